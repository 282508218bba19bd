"""The printed form of ``tasks.ner.data.inspection``."""

from rich.table import Table

from tasks.common.reports.tables import as_cells, terminal, terminal_table

BAR = 30


def print_inspection(result):
    """Print the result of :func:`tasks.ner.data.inspection.inspect` as tables.

    Args:
        result: the dict, with ``file`` and ``format`` in each of its ``splits``.
    """
    console = terminal()
    splits = result["splits"]
    for split, row in splits.items():
        console.print(*as_cells(f"{split}: {row['file']} ({row['format']})"))
    console.print(_counts_table(splits))
    console.print(_types_table(splits))
    for split, types in result["missing_types"].items():
        if types:
            console.print(*as_cells(f"{split} has no entity of type {', '.join(types)}, which another split has"))
    for key, title in (("text_lengths", "texts"), ("entity_lengths", "entities")):
        console.print(_lengths_table(splits, key, f"length of {title} in characters"))
    lengths = result["lengths"]
    console.print(
        f"a model trained on {next(iter(splits))} reads texts of more than {lengths['window_tokens']} tokens in "
        f"windows of that length, and finds entities of up to {lengths['max_entity_tokens']} tokens"
    )
    for split, summary in splits.items():
        if summary["text_lengths"]:
            console.print(_histogram_table(split, summary["text_lengths"]["histogram"]))
    _print_findings(console, splits, result["findings"])


def _counts_table(splits):
    table = terminal_table("data", "split", ("texts", "without entities", "characters", "entities", "entities a text"))
    for split, row in splits.items():
        counts = (str(row[key]) for key in ("texts", "texts_without_entities", "characters", "entities"))
        table.add_row(split, *counts, f"{row['entities'] / max(row['texts'], 1):.2f}")
    return table


def _types_table(splits):
    table = terminal_table("entities by type", "type", (name for split in splits for name in (split, "share")))
    for type_ in next(iter(splits.values()))["types"]:
        shares = []
        for row in splits.values():
            count = row["types"][type_]
            shares += [str(count), f"{100 * count / max(row['entities'], 1):.1f} %"]
        table.add_row(*as_cells(type_, *shares))
    return table


def _lengths_table(splits, key, title):
    names = ("min", "median", "p95", "p99", "max")
    table = terminal_table(title, "split", names)
    for split, row in splits.items():
        table.add_row(split, *(str(row[key][name]) if row[key] else "-" for name in names))
    return table


def _histogram_table(split, histogram):
    table = Table(title=f"{split}: texts by length", title_justify="left", show_header=False, box=None)
    longest = max(count for _, _, count in histogram)
    for low, high, count in histogram:
        bar = "█" * max(round(BAR * count / longest), 1 if count else 0)
        table.add_row(f"{low}-{high}", str(count), bar)
    return table


def _print_findings(console, splits, findings):
    found = {name: finding for name, finding in findings.items() if any(finding["counts"].values())}
    table = terminal_table("findings", "what", splits)
    for finding in found.values():
        table.add_row(finding["meaning"], *(str(finding["counts"][split]) for split in splits))
    if found:
        console.print(table)
    for finding in found.values():
        if finding["examples"]:
            console.print(f"{finding['meaning']}:", style="bold")
            for example in finding["examples"]:
                console.print(*as_cells(f"  {example['where']}  {example['what']}"))
    clear = [finding["meaning"].split(":")[0] for name, finding in findings.items() if name not in found]
    if clear:
        console.print(f"Not found: {'; '.join(clear)}.")
