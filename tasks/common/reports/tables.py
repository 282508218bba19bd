"""Tables as CSV, as Markdown, and in a terminal."""

from __future__ import annotations

import csv
import io
import statistics
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tasks.common.errors import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def as_csv(rows, columns):
    """Rows (dicts) as CSV with a header, LF at line ends."""
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return table.getvalue()


def as_markdown(rows, columns):
    """Rows (dicts) as a Markdown table; a column with numbers only is set to the right; None is an empty cell."""
    right = {name: all(isinstance(row.get(name, ""), (int, float)) for row in rows) for name in columns}
    lines = [columns, ["---:" if right[name] else "---" for name in columns]]
    cells = [["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows]
    lines += [[cell.replace("|", "\\|") for cell in of_row] for of_row in cells]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def mean_and_deviation(values: Sequence[float], digits: int = 4) -> str:
    """``mean ± standard deviation`` of the sample (n - 1); the value alone where there is one."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean


def as_cells(*texts: str) -> list[Text]:
    """Texts as cells of a table of rich: brackets are no markup, and control characters are escaped."""
    from rich.text import Text

    return [Text(visible(text)) for text in texts]


def terminal(width: int | None = None) -> Console:
    """What rich prints tables to, without folding lines. Its stream is the one behind
    :class:`tasks.common.output.Output`, so everything printed has to be from :func:`as_cells`."""
    from rich.console import Console

    return Console(file=getattr(sys.stdout, "stream", sys.stdout), soft_wrap=True, highlight=False, width=width)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str] | None]) -> None:
    """Print rows of texts, None for a line between; all columns but the first are set to the right. The table is as
    wide as its texts, since one of rich's would be cut at the width of the terminal."""
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


def print_score_rows(title, first_column, rows):
    """Print a table of pairs of a name and its :func:`~tasks.common.scores.f1_row`; None is a line between."""

    def cells(name, scores):
        shares = (f"{scores[key]:.4f}" for key in ("precision", "recall", "f1"))
        return name, *shares, str(scores["support"]), str(scores["predicted"])

    columns = (first_column, "precision", "recall", "F1", "gold", "predicted")
    print_table(title, columns, (row and cells(*row) for row in rows))
