"""What training, evaluation and inspection print."""

from paddle_rope.tasks.common.errors import visible
from paddle_rope.tasks.common.reports.tables import as_cells, print_confusions, print_score_rows, print_table, terminal
from paddle_rope.tasks.ner.batching import LONGER_THAN_A_WINDOW
from paddle_rope.tasks.ner.examples import Example
from paddle_rope.tasks.ner.formats.source import Faults
from paddle_rope.tasks.ner.metrics import BOUNDARY_ERRORS

MOST_ERRORS = 20  # of one worst example
LONGEST_TEXT = 200  # characters of a worst example
SIDES = ("gold", "predicted")  # keys of an error
MEANINGS = {
    "type": "right boundaries, wrong type",
    "boundary": "right type, wrong boundaries: {boundaries}",
    "both": "wrong type and boundaries, but overlapping",
    "missed": "gold, and nothing found there",
    "spurious": "found, and nothing gold there",
}
FIRST_TEXTS = 2  # of a file, shown as they were read
FIRST_CHARACTERS = 50
FIRST_ENTITIES, FIRST_RELATIONS = 6, 3


def print_first_texts(title: str, examples: list[Example]) -> None:
    """Print the first texts of a file as they were read, shortened, and under each its entities."""
    _print_title(f"{title} begins, as it was read:")
    for example in examples[:FIRST_TEXTS]:
        entities = [f"{one.type} {_shortened(example.surface(one))}" for one in example.entities[:FIRST_ENTITIES]]
        more = len(example.entities) - len(entities)
        listed = ", ".join(entities + [f"{more} more"] * bool(more)) or "no entity"
        print(f"  {visible(_shortened(example.text))}\n    {visible(listed)}")
        for head, tail, kind in example.relations[:FIRST_RELATIONS]:
            ends = (_shortened(example.surface(example.entities[end])) for end in (head, tail))
            print(f"    {visible(f'{kind}: ' + ' → '.join(ends))}")


def _shortened(text, characters=FIRST_CHARACTERS):
    return text if len(text) <= characters else f"{text[:characters]}... ({len(text)} characters)"


def print_faults(faults: dict[str, Faults], most_examples: int) -> None:
    """Print what is wrong in each split, by kind, with a few messages of each."""
    for title, found in faults.items():
        if found.counts:
            print_table(
                f"wrong in {title}", ("kind", "number"), [(kind, str(n)) for kind, n in found.counts.most_common()]
            )
        for kind, messages in found.messages.items():
            _print_title(kind)
            print("".join(f"  {message}\n" for message in messages[:most_examples]), end="")


def print_scores(title: str, scores: dict) -> None:
    """Print the result of ``entity_scores`` as a table, one row for each type and one for all."""
    print_score_rows(title, "type", scores["per_type"].items(), [None, ("all (micro)", scores)])


def print_errors(analysis: dict) -> None:
    """Print the result of ``error_analysis`` as tables."""
    errors = analysis["errors"]
    boundaries = ", ".join(f"{errors[kind]} {kind.replace('_', ' ')}" for kind in BOUNDARY_ERRORS)
    meanings = {kind: meaning.format(boundaries=boundaries) for kind, meaning in MEANINGS.items()}
    print_kinds(errors, meanings)
    print_confusions(analysis["confusions"])
    print_score_rows("by length in characters", "length", [(_length_name(row), row) for row in analysis["by_length"]])
    if analysis["by_nesting"]:
        print_score_rows("by nesting", "entities", analysis["by_nesting"].items())


def print_kinds(errors: dict[str, int], meanings: dict[str, str]) -> None:
    """Print how often each kind of error occurs, with its meaning."""
    rows = [(f"{kind}: {meaning}", str(errors[kind])) for kind, meaning in meanings.items()]
    print_table("errors", ("kind", "number"), rows)


def print_worst_examples(examples: list[dict]) -> None:
    """Print the result of ``worst_examples``."""
    if examples:
        _print_title("worst examples")
    for example in examples:
        errors = example["errors"]
        print(f"  {visible(example['where'])}: {len(errors)} error{'s' if len(errors) > 1 else ''}")
        print(f"    {visible(_shortened(example['text'], LONGEST_TEXT))}")
        for error in errors[:MOST_ERRORS]:
            sides = [f"{side} {_entity(error[side])}" for side in SIDES if error[side]]
            print(f"    {error['kind'].replace('_', ' '):<10}{', '.join(sides)}")
        if len(errors) > MOST_ERRORS:
            print(f"    and {len(errors) - MOST_ERRORS} more")


def _entity(entity):
    score = f" {entity['score']:.2f}" if "score" in entity else ""
    surface = visible(entity["text"][:LONGEST_TEXT])
    return f"{visible(entity['type'])} '{surface}' [{entity['start']}, {entity['end']}){score}"


def _length_name(row):
    if row["to"] is None:
        return f"{row['from']} or more"
    return str(row["from"]) if row["from"] == row["to"] else f"{row['from']} to {row['to']}"


def _print_title(title, style="italic"):
    terminal().print(*as_cells(title), style=style)


def print_data_report(datasets: dict) -> None:
    """Print counts of each ``NerDataset``, and the gold entities that cannot be learned."""
    for name, dataset in datasets.items():
        lengths = [len(example.text) for example in dataset.examples]
        entities = sum(len(example.entities) for example in dataset.examples)
        characters = f"{sum(lengths)} characters (longest {max(lengths)})"
        print(f"{visible(name)}: {len(lengths)} texts, {characters}, {entities} entities")
        windows, longer = dataset.cut
        if longer:
            kept = "" if LONGER_THAN_A_WINDOW in dataset.faults else "; no entity is lost"
            print(f"  {longer} of them are longer than max_characters: they are cut into {windows} windows{kept}")
        for fault, found in dataset.faults.items():
            shown = "; ".join(f"{one.where} {one.described(entity)}" for one, entity in found[:3])
            told = f"{len(found)} of them {fault} and cannot be found by the model (they count as missed)"
            print(f"  {told}: {visible(shown)}")


def print_inspection(result):
    """Print the result of ``inspect``, with ``file`` and ``format`` in each of its ``splits``, as tables."""
    splits = result["splits"]
    for split, row in splits.items():
        print(visible(f"{split}: {row['file']} ({row['format']})"))
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
    relations = sorted({kind for row in splits.values() for kind in row["relations"]})
    if relations:
        rows = ((kind, *(str(row["relations"].get(kind, 0)) for row in splits.values())) for kind in relations)
        print_table("relations by type", ("type", *splits), rows)
    for split, types in result["missing_types"].items():
        if types:
            print(visible(f"{split} has no entity of type {', '.join(types)}, which another split has"))
    lengths = {"text_lengths": "texts", "entity_lengths": "entities", "relation_lengths": "relations"}
    for key, title in [*lengths.items()][: 2 + bool(relations)]:
        names = ("min", "median", "p95", "p99", "max")
        rows = ((split, *(str(row[key][name]) if row[key] else "-" for name in names)) for split, row in splits.items())
        print_table(f"length of {title} in characters", ("split", *names), rows)
    lengths = result["lengths"]
    print(
        f"a model trained on {next(iter(splits))} reads texts of more than {lengths['window_tokens']} tokens in "
        f"windows of that length, and finds entities of up to {lengths['max_entity_tokens']} tokens"
    )
    _print_findings(splits, result["findings"])


def _count_and_share(row, kind):
    count = row["types"][kind]
    return str(count), f"{100 * count / max(row['entities'], 1):.1f} %"


def _print_findings(splits, findings):
    found = [finding for finding in findings.values() if any(finding["counts"].values())]
    clear = [finding["meaning"].split(":")[0] for finding in findings.values() if finding not in found]
    rows = ((finding["meaning"], *(str(finding["counts"][split]) for split in splits)) for finding in found)
    if found:
        print_table("findings", ("what", *splits), rows)
    for finding in found:
        if finding["examples"]:
            _print_title(f"{finding['meaning']}:", "bold")
            for example in finding["examples"]:
                print(visible(f"  {example['where']}  {example['what']}"))
    if clear:
        print(f"Not found: {'; '.join(clear)}.")
