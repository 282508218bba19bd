"""The printed form of ``tasks.ner.data.inspection``."""

from tasks.common.reports.tables import as_cells, print_table, terminal


def print_inspection(result):
    """Print the result of :func:`tasks.ner.data.inspection.inspect`, with ``file`` and ``format`` in each of its
    ``splits``, as tables."""
    console = terminal()
    splits = result["splits"]
    for split, row in splits.items():
        console.print(*as_cells(f"{split}: {row['file']} ({row['format']})"))
    counted = ("texts", "texts_without_entities", "characters", "entities")
    print_table(
        "data",
        ("split", "texts", "without entities", "characters", "entities", "entities a text"),
        (
            (split, *(str(row[key]) for key in counted), f"{row['entities'] / max(row['texts'], 1):.2f}")
            for split, row in splits.items()
        ),
    )
    print_table(
        "entities by type",
        ("type", *(name for split in splits for name in (split, "share"))),
        (
            (kind, *(cell for row in splits.values() for cell in _count_and_share(row, kind)))
            for kind in next(iter(splits.values()))["types"]
        ),
    )
    for split, types in result["missing_types"].items():
        if types:
            console.print(*as_cells(f"{split} has no entity of type {', '.join(types)}, which another split has"))
    for key, title in (("text_lengths", "texts"), ("entity_lengths", "entities")):
        names = ("min", "median", "p95", "p99", "max")
        rows = ((split, *(str(row[key][name]) if row[key] else "-" for name in names)) for split, row in splits.items())
        print_table(f"length of {title} in characters", ("split", *names), rows)
    lengths = result["lengths"]
    console.print(
        f"a model trained on {next(iter(splits))} reads texts of more than {lengths['window_tokens']} tokens in "
        f"windows of that length, and finds entities of up to {lengths['max_entity_tokens']} tokens"
    )
    _print_findings(console, splits, result["findings"])


def _count_and_share(row, kind):
    count = row["types"][kind]
    return str(count), f"{100 * count / max(row['entities'], 1):.1f} %"


def _print_findings(console, splits, findings):
    found = [finding for finding in findings.values() if any(finding["counts"].values())]
    clear = [finding["meaning"].split(":")[0] for finding in findings.values() if finding not in found]
    rows = ((finding["meaning"], *(str(finding["counts"][split]) for split in splits)) for finding in found)
    if found:
        print_table("findings", ("what", *splits), rows)
    for finding in found:
        if finding["examples"]:
            console.print(f"{finding['meaning']}:", style="bold")
            for example in finding["examples"]:
                console.print(*as_cells(f"  {example['where']}  {example['what']}"))
    if clear:
        console.print(f"Not found: {'; '.join(clear)}.")
