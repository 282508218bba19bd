"""What training and evaluation print."""

import itertools

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

MOST_TYPES = 40  # rows of a table
MOST_CONFUSED = 16  # types of a table of confusion, and lines of the list that takes its place
MOST_ERRORS = 20  # of one worst example
LONGEST_TEXT = 200  # characters of a worst example
COLUMNS = ("precision", "recall", "F1", "gold", "predicted")


def print_scores(title, scores):
    """Print the result of :func:`tasks.ner.metrics.entity_scores` as a table, one line a type and one for all.

    Of more than ``MOST_TYPES`` types, those with the most gold entities are printed.
    """
    per_type = scores["per_type"]
    shown = _most(per_type, lambda kind: per_type[kind]["support"])
    _print_rows(_console(), title, "type", [*((k, per_type[k]) for k in shown), None, ("all (micro)", scores)])
    if len(shown) < len(per_type):
        print(f"  and {len(per_type) - len(shown)} types with fewer gold entities, which count in the last line")


def _most(kinds, count):
    """The ``MOST_TYPES`` with the highest count, in their order."""
    if len(kinds) <= MOST_TYPES:
        return list(kinds)
    chosen = set(sorted(kinds, key=count, reverse=True)[:MOST_TYPES])
    return [kind for kind in kinds if kind in chosen]


def print_errors(analysis):
    """Print the result of :func:`tasks.ner.reports.error_analysis.error_analysis` as tables."""
    console, errors = _console(), analysis["errors"]
    console.print("errors", style="italic")
    for name, count, meaning in (
        ("type", errors["type"], "right boundaries, wrong type"),
        (
            "boundary",
            errors["boundary"],
            f"right type, wrong boundaries: {errors['too_long']} too long, {errors['too_short']} too short, "
            f"{errors['crossing']} crossing",
        ),
        ("both", errors["both"], "wrong type and boundaries, but overlapping"),
        ("missed", errors["missed"], "gold, and nothing found there"),
        ("spurious", errors["spurious"], "found, and nothing gold there"),
    ):
        console.print(f"  {name:<9}{count:>6}  {meaning}", highlight=False, markup=False)
    _print_confusion(console, analysis["confusion"])
    rows = [(_length_name(row), row) for row in analysis["by_length"]]
    _print_rows(console, "by length in characters", "length", rows)
    if analysis["by_nesting"]:
        _print_rows(console, "by nesting", "entities", analysis["by_nesting"].items())


def print_worst_examples(examples):
    """Print the result of :func:`tasks.ner.reports.error_analysis.worst_examples`."""
    console = _console()
    if examples:
        console.print("worst examples", style="italic")
    for example in examples:
        text, errors = example["text"], example["errors"]
        more = f"... ({len(text)} characters)" if len(text) > LONGEST_TEXT else ""
        lines = [f"  {example['where']}: {_count_errors(example)}", f"    {_one_line(text[:LONGEST_TEXT])}{more}"]
        for error in errors[:MOST_ERRORS]:
            sides = [f"{side} {_entity(error[side])}" for side in ("gold", "predicted") if error[side]]
            lines.append(f"    {error['kind'].replace('_', ' '):<10}{', '.join(sides)}")
        if len(errors) > MOST_ERRORS:
            lines.append(f"    and {len(errors) - MOST_ERRORS} more")
        console.print("\n".join(lines), highlight=False, markup=False)


def _count_errors(example):
    return "1 error" if example["number_of_errors"] == 1 else f"{example['number_of_errors']} errors"


def _entity(entity):
    score = f" {entity['score']:.2f}" if "score" in entity else ""
    surface = _one_line(entity["text"][:LONGEST_TEXT])
    return f"{_one_line(entity['type'])} '{surface}' [{entity['start']}, {entity['end']}){score}"


def _one_line(text):
    """``text`` with what a terminal does not show, or obeys, as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _length_name(row):
    if row["to"] is None:
        return f"{row['from']} or more"
    return str(row["from"]) if row["from"] == row["to"] else f"{row['from']} to {row['to']}"


def _print_confusion(console, confusion):
    """A table of few types, a list of the most frequent confusions of many."""
    if len(confusion) <= MOST_CONFUSED:
        _print_confusion_table(console, confusion)
        return
    pairs = [
        (count, gold, found)
        for gold, row in confusion.items()
        for found, count in row["predicted_as"].items()
        if found != gold
    ]
    pairs.sort(key=lambda pair: -pair[0])
    more = f", the first {MOST_CONFUSED} of {len(pairs)}" if len(pairs) > MOST_CONFUSED else ""
    console.print(f"confusion between types{more}", style="italic", highlight=False)
    for count, gold, found in pairs[:MOST_CONFUSED]:
        line = f"  {count:>6}  gold {_one_line(gold)}, predicted {_one_line(found)}"
        console.print(line, highlight=False, markup=False)


def _print_confusion_table(console, confusion):
    """Rows are gold, columns predicted; zeros are dots, so that the errors stand out. Types are lettered, so that the
    columns are narrow; a table of rich would be cut at the width of the terminal."""
    rows = [("", "", [*(_letter(number) for number in range(len(confusion))), "other span", "missed"])]
    for number, (kind, row) in enumerate(confusion.items()):
        counts = [*(row["predicted_as"].get(found, 0) for found in confusion), row["gold_other_boundaries"]]
        rows.append((_letter(number), _one_line(kind), _dotted([*counts, row["missed"]])))
    for name, key in (("other span", "predicted_other_boundaries"), ("spurious", "spurious")):
        rows.append(("", name, _dotted(row[key] for row in confusion.values())))
    names = [cell_len(name) for _, name, _ in rows]
    columns = itertools.zip_longest(*(cells for _, _, cells in rows), fillvalue="")
    widths = [max(map(len, column)) for column in columns]
    console.print("confusion between types: rows gold, columns predicted", style="italic")
    for (letter, name, cells), length in zip(rows, names):
        counts = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths))
        line = f"  {letter:<2} {name}{' ' * (max(names) - length)}  {counts}"
        console.print(line, highlight=False, markup=False)


def _letter(number):
    return chr(ord("a") + number)


def _dotted(counts):
    return [str(count) if count else "." for count in counts]


def _print_rows(console, title, first_column, rows):
    table = Table(title=Text(title), title_justify="left")
    table.add_column(first_column)
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(Text(_one_line(row[0])), *_cells(row[1]))
    console.print(table)


def _cells(row):
    return (
        *(f"{row[name]:.4f}" for name in ("precision", "recall", "f1")),
        str(row["support"]),
        str(row["predicted"]),
    )


def print_data_report(datasets):
    """Print counts of each data set, and the gold entities that no token boundary fits.

    Args:
        datasets: dict from a name to a :class:`tasks.ner.batching.NerDataset`.
    """
    console = _console()
    for name, dataset in datasets.items():
        lengths = [len(example.text) for example in dataset.examples]
        entities = sum(len(example.entities) for example in dataset.examples)
        console.print(
            f"{name}: {len(lengths)} texts, {sum(lengths)} characters (longest {max(lengths)}), {entities} entities",
            highlight=False,
            markup=False,
        )
        if dataset.unaligned:
            examples = "; ".join(
                f"{example.where} {entity.type} {example.text[entity.start : entity.end]!r}"
                for example, entity in dataset.unaligned[:3]
            )
            console.print(
                f"  {len(dataset.unaligned)} of them start or end inside a token and cannot be found by the model "
                f"(they count as missed): {examples}",
                highlight=False,
                markup=False,
            )


def _console():
    return Console(soft_wrap=True)
