"""Tables as CSV, as Markdown, and in a terminal; rows and lines of scores."""

import csv
import io
import statistics
import sys
from collections.abc import Sequence

from paddle_rope.tasks.common.errors import visible


def as_csv(rows):
    """Rows (dicts) as CSV with a header, LF at line ends."""
    table = io.StringIO()
    writer = csv.DictWriter(table, keys_of(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return table.getvalue()


def as_markdown(rows, columns=None):
    """Rows (dicts) as a Markdown table of ``columns``, by default of all keys; columns of numbers only are
    right-aligned; None is an empty cell."""
    columns = columns or keys_of(rows)
    right = {name: all(isinstance(row.get(name, ""), (int, float)) for row in rows) for name in columns}
    lines = [columns, ["---:" if right[name] else "---" for name in columns]]
    cells = [["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows]
    lines += [[cell.replace("|", "\\|") for cell in of_row] for of_row in cells]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def keys_of(rows):
    """All keys of some dicts, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def mean_and_deviation(values: Sequence[float]) -> str:
    """``mean ± standard deviation`` of the sample (n - 1); a single value is shown alone."""
    mean = f"{statistics.fmean(values):.4f}"
    return f"{mean} ± {statistics.stdev(values):.4f}" if len(values) > 1 else mean


def as_cells(*texts):
    """Texts as cells of a table of rich: brackets are not markup, and control characters are escaped."""
    from rich.text import Text

    return [Text(visible(text)) for text in texts]


def terminal(width=None):
    """The console that rich prints tables to, without wrapping lines. It bypasses ``Output``, so everything printed
    must come from :func:`as_cells`."""
    from rich.console import Console

    return Console(file=getattr(sys.stdout, "stream", sys.stdout), soft_wrap=True, highlight=False, width=width)


def print_table(title, columns, rows):
    """Print rows of texts; None draws a line. All columns except the first are right-aligned. The table is as wide as
    its texts, because rich would cut it at the width of the terminal."""
    from rich.table import Table

    title, *columns = as_cells(title, *columns)
    table = Table(title=title, title_justify="left")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*as_cells(*row))
    terminal(width=1000).print(table)


# ---- scores

MOST_ROWS, MOST_CONFUSIONS = 40, 20  # of a table
_TITLES = {"f1": "F1", "macro_f1": "macro F1", "spearman": "Spearman"}  # where they differ from the names


def f1_row(support: int, predicted: int, correct: int) -> dict:
    """Precision, recall and F1 with the counts they come from; a quotient 0/0 counts as 0."""
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / support if support else 0.0,
        "f1": 2 * correct / (predicted + support) if predicted + support else 0.0,
        "support": support,
        "predicted": predicted,
        "correct": correct,
    }


def scores_line(scores, names):
    """The scores with these ``names``, as far as they exist, and the threshold that they have been computed with, if
    there is one, in one line."""
    shown = [name for name in (*names, "threshold") if name in scores]
    return "  ".join(f"{_TITLES.get(name, name)} {scores[name]:.4f}" for name in shown)


def print_score_rows(title, first_column, rows, last=()):
    """Print a table of pairs of a name and its :func:`f1_row`; of very many, those with the most gold ones. Then print
    the ``last`` rows, of which None draws a line."""

    def cells(name, scores):
        shares = (f"{scores[key]:.4f}" for key in ("precision", "recall", "f1"))
        return name, *shares, str(scores["support"]), str(scores["predicted"])

    rows = list(rows)
    most = sorted(range(len(rows)), key=lambda index: -rows[index][1]["support"])[:MOST_ROWS]
    shown = [*(rows[index] for index in sorted(most)), *last]
    columns = (first_column, "precision", "recall", "F1", "gold", "predicted")
    print_table(title, columns, (row and cells(*row) for row in shown))
    if len(most) < len(rows):
        print(f"  and {len(rows) - len(most)} more, with fewer gold ones")


def confusions_of(pairs):
    """A Counter of pairs of a gold and another predicted label as dicts with ``gold``, ``predicted`` and ``count``, the
    most frequent first."""
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [{"gold": gold, "predicted": found, "count": count} for (gold, found), count in ordered]


def print_confusions(confusions):
    """Print the most frequent of :func:`confusions_of`, if there are any."""
    rows = [tuple(map(str, row.values())) for row in confusions[:MOST_CONFUSIONS]]
    if rows:
        print_table("most frequent confusions", ("gold", "predicted", "number"), rows)
