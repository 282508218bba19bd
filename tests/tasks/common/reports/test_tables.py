"""Tables as CSV and Markdown."""

import csv
import io

from tasks.common.reports.tables import as_csv, as_markdown

ROWS = [{"name": "a|b, c", "value": 1.5, "other": 3}, {"name": "d", "value": 2}]


def test_csv_reads_back_and_leaves_out_what_is_not_asked_for():
    assert list(csv.DictReader(io.StringIO(as_csv(ROWS, ["name", "value"])))) == [
        {"name": "a|b, c", "value": "1.5"}, {"name": "d", "value": "2"},
    ]  # fmt: skip


def test_markdown_sets_numbers_to_the_right_and_keeps_bars_inside_cells():
    assert as_markdown(ROWS, ["name", "value"]) == "| name | value |\n| --- | ---: |\n| a\\|b, c | 1.5 |\n| d | 2 |\n"
