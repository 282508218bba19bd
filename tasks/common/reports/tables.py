"""Tables as CSV and as Markdown."""

import csv
import io
import statistics
from collections.abc import Sequence


def as_csv(rows, columns):
    """Rows (dicts) as CSV with a header, LF at line ends."""
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return table.getvalue()


def as_markdown(rows, columns):
    """Rows (dicts) as a Markdown table; a column with numbers only is set to the right."""
    right = {name: all(isinstance(row.get(name, ""), (int, float)) for row in rows) for name in columns}
    lines = [columns, ["---:" if right[name] else "---" for name in columns]]
    lines += [[str(row.get(name, "")).replace("|", "\\|") for name in columns] for row in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def mean_and_deviation(values: Sequence[float], digits: int = 4) -> str:
    """``mean ± standard deviation`` of the sample (n - 1); the value alone where there is one."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean
