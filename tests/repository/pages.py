"""The pages, and tables on pages, that are made from the code.

    python -m tests.repository.pages

writes them anew: the command line from what ``paddle-rope VERB --help`` prints; the tests of each equation of
docs/concepts/mathematics/, which name the rows that they prove (``@pytest.mark.equation("1.1", "2.3")``); and the
tables of configuration keys, each between ``<!-- keys: NAME -->`` and ``<!-- end of keys -->``. NAME is a recipe, for
the keys that it does not share with all others; ``shared``; or a configuration, for the options that it adds to its
base. English meanings are the help texts, Chinese ones are in docs/keys.zh.yaml, there also under the name of the
recipe alone that has another meaning for a key.
"""

import ast
import contextlib
import dataclasses
import io
import re
from functools import lru_cache
from pathlib import Path

import pytest
import yaml

from paddle_rope.roformer import RoFormerConfig, SequenceClassificationConfig
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.commands.train import as_yaml
from paddle_rope.tasks.common.training.arguments import EncoderArguments
from paddle_rope.tasks.common.training.settings import DOCUMENTED, usable_keys
from paddle_rope.tasks.recipes import get_arguments

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS, TESTS = REPOSITORY / "docs", REPOSITORY / "tests"
COMMAND_LINE = DOCS / "reference" / "command-line.md"
CHAPTERS = DOCS / "concepts" / "mathematics"
APPENDIX = DOCS / "contributing" / "equations.md"

# ---- the command line

HEAD = """\
# Command line

[Documents](../index.md) · [configuration keys](configuration-keys.md)

Every verb of `paddle-rope` with its options, as `paddle-rope VERB --help` prints them. `python -m
tests.repository.pages` writes this page, so edit the help texts in `tasks/commands/` and not the page. The keys of
`train` are on [the page of configuration keys](configuration-keys.md).
"""
SUBVERBS = re.compile(r"usage: paddle-rope(?: [\w-]+)? [A-Z]+ \.\.\.\n")


@lru_cache
def help_of(*words):
    """What ``paddle-rope WORDS --help`` prints, in lines of at most 100 characters."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        patch.setenv("COLUMNS", "102")  # argparse leaves two empty
        main([*words, "--help"])
    return printed.getvalue().rstrip("\n")


def command_line():
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


# ---- tables of keys

TABLE = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)
HEADS = {"en": ("key", "default", "meaning", "required"), "zh": ("键", "默认值", "含义", "必填")}
RECIPES = {name: get_arguments(name) for name in ("ner", "matching", "classification", "pretraining")}
REQUIRED = ...  # in place of the default of a key that must be given
CONFIGURATIONS = {one.__name__: one for one in (RoFormerConfig, SequenceClassificationConfig)}


def keys_of(name):
    """The rows of a table, the keys that must be given first."""
    if name in CONFIGURATIONS:
        configuration = CONFIGURATIONS[name]
        own = [one for one in dataclasses.fields(configuration) if one.name not in configuration.__base__.names()]
        return [(one.name, one.default, one.metadata["help"]) for one in own]
    arguments = RECIPES["ner" if name == "shared" else name]
    others = usable_keys(arguments) if name == "shared" else arguments.DEFAULTS
    shared = vars(EncoderArguments)["__dataclass_fields__"]
    fields = [one for one in dataclasses.fields(arguments) if (shared.get(one.name) is one) == (name == "shared")]
    rows = [(one.name, one.default, one.metadata["help"]) for one in fields]
    rows += [(key, default, DOCUMENTED[key].metadata["help"]) for key, default in others.items()]
    rows = [(key, REQUIRED if key in arguments.REQUIRED else default, meaning) for key, default, meaning in rows]
    return sorted(rows, key=lambda row: row[1] is not REQUIRED)


def table(name, language, meanings=None):
    """A table in Markdown; ``meanings`` from key to meaning stand for the English ones."""
    *heads, required = HEADS[language]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|"]
    for key, default, meaning in keys_of(name):
        shown = required if default is REQUIRED else "" if default is None else f"`{as_yaml(default)}`"
        lines.append(f"| `{key}` | {shown} | {meanings[key] if meanings else meaning} |")
    return "\n".join(lines) + "\n"


def with_tables(page):
    """The text of a page with its tables renewed."""
    chinese = page.name.endswith(".zh.md")
    meanings = yaml.safe_load((DOCS / "keys.zh.yaml").read_text(encoding="utf-8")) if chinese else None

    def renewed(match):
        own = {**meanings, **meanings.get(match[2], {})} if chinese else None
        return match[1] + table(match[2], "zh" if chinese else "en", own) + match[3]

    return TABLE.sub(renewed, page.read_text(encoding="utf-8"))


# ---- the tests of the equations

NUMBER = re.compile(r"\d+\.\d+")
APPENDIX_HEAD = """\
# Tests of the equations

[From the equations to the functions](../concepts/mathematics/index.md)

`python -m tests.repository.pages` writes this page. The numbers are the rows of the chapters. Tests are listed after
their file in `tests/`, without the prefix `test_`."""


def chapters():
    """The pages with equations, in the order of the numbers of their rows."""
    first = re.compile(r"^\| (\d+)\.", re.MULTILINE)
    pages = {page: first.search(page.read_text(encoding="utf-8")) for page in CHAPTERS.glob("*.md")}
    return sorted((page for page in pages if pages[page]), key=lambda page: int(pages[page][1]))


def cells_of(line):
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


@lru_cache
def proofs():
    """``{"1.1": [("paddle_rope/test_rotary.py", "norms_are_kept"), ...]}``, from the markers of the tests."""
    found = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for marker in getattr(node, "decorator_list", ()):
                if isinstance(marker, ast.Call) and ast.unparse(marker.func) == "pytest.mark.equation":
                    for number in marker.args:
                        place = path.relative_to(TESTS).as_posix(), node.name.removeprefix("test_")
                        found.setdefault(ast.literal_eval(number), []).append(place)
    return found


def appendix():
    """The text of equations.md: the chapters and their equations, with the tests."""
    tests, lines, section = proofs(), [APPENDIX_HEAD], None
    for line in "\n".join(page.read_text(encoding="utf-8") for page in chapters()).splitlines():
        if line.startswith("# "):
            section = f"\n## {line.lstrip('# ')}"
        elif line.startswith("|") and NUMBER.fullmatch(cells_of(line)[0]):
            number, equation, _ = cells_of(line)
            if section is not None:
                lines.append(f"{section}\n\n| | equation | tests |\n|---|---|---|")
                section = None
            files = {}
            for file, name in tests.get(number, []):
                files.setdefault(file, []).append(f"`{name}`")
            shown = "; ".join(f"`{file}`: {', '.join(names)}" for file, names in files.items())
            lines.append(f"| {number} | {equation} | {shown} |")
    return "\n".join(lines) + "\n"


def made_pages():
    """dict from each page that is made, or may have a table that is, to its text."""
    pages = {page: with_tables(page) for page in sorted(DOCS.rglob("*.md"))}
    return {**pages, COMMAND_LINE: command_line(), APPENDIX: appendix()}


if __name__ == "__main__":
    for page, text in made_pages().items():
        page.write_text(text, encoding="utf-8")
