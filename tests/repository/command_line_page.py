"""Write docs/reference/command-line.md from what ``paddle-rope VERB --help`` prints.

python -m tests.repository.command_line_page
"""

import contextlib
import io
import os
import re
from functools import lru_cache
from pathlib import Path

from tasks.commands.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"
HEAD = """\
# Command line

[Documents](../index.md) · [configuration keys](configuration-keys.md)

Every verb of `paddle-rope` with its options, as `paddle-rope VERB --help` prints them. `python -m
tests.repository.command_line_page` writes this page, so edit the help texts in `tasks/commands/` and not the page. The
keys of `train` are on [the page of configuration keys](configuration-keys.md).
"""
SUBVERBS = re.compile(r"usage: paddle-rope(?: [\w-]+)? [A-Z]+ \.\.\.\n")


@lru_cache
def help_of(*words):
    """What ``paddle-rope WORDS --help`` prints, in lines of at most 100 characters."""
    printed, columns = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "102"  # argparse leaves two empty
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    return printed.getvalue().rstrip("\n")


def page():
    """The text of command-line.md: the command, its verbs, and the tasks or kinds of a verb that has several."""
    lines = [HEAD]

    def section(words, depth):
        text = help_of(*words)
        lines.append(f"{'#' * depth} {' '.join(words) or 'paddle-rope'}\n\n```text\n{text}\n```\n")
        if SUBVERBS.match(text):
            for name in re.findall(r"^  (\S+)  ", text, re.MULTILINE):
                section([*words, name], depth + 1 if words else depth)

    section([], 2)
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
