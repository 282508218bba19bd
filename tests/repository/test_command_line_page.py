"""docs/reference/command-line.md is what --help prints."""

from tests.repository.command_line_page import PAGE, page


def test_the_page_is_up_to_date():
    shown = PAGE.read_text(encoding="utf-8").split()  # the words: versions of argparse break lines differently
    assert shown == page().split(), "run python -m tests.repository.command_line_page"
