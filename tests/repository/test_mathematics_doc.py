"""docs/concepts/mathematics/ names functions and tests that exist; its appendix is up to date."""

import ast
import contextlib
import html
import importlib
import inspect
import pkgutil
import re
from collections import Counter
from functools import lru_cache

from markdown_it import MarkdownIt

from tests.repository.pages import NUMBER, REPOSITORY, cells_of, chapters, proofs

TEXT = "\n".join(page.read_text(encoding="utf-8") for page in chapters())
TABLES = re.findall(r"^(\|.*)\n\|---\S*\n((?:\|.*\n?)+)", TEXT, re.MULTILINE)  # (header, rows)
ROWS = [cells_of(line) for head, lines in TABLES if cells_of(head)[-1] == "function" for line in lines.splitlines()]


@lru_cache
def definitions():
    """``{name: [arguments of each definition]}`` of what the mathematics names; a method is ``Class.name``."""
    known, modules = {}, ["paddle_rope.tasks.experiments.long_range_decay", "tests.paddle_rope.reference"]
    for package in ("paddle_rope", "paddle_rope.tasks.ner"):
        found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        names = [one.name for one in found if not one.name.endswith("__main__")]
        modules += [one for one in names if not one.removeprefix(package).startswith(".tasks")]
    for module in map(importlib.import_module, modules):
        prefix = "reference." if module.__name__.endswith(".reference") else ""
        for name, one in vars(module).items():
            members = {f"{name}.{key}": value for key, value in vars(one).items()} if inspect.isclass(one) else {}
            for key, value in {name: one, **members}.items():
                with contextlib.suppress(TypeError, ValueError):  # constants have no arguments
                    known.setdefault(prefix + key, [set()]).append(set(inspect.signature(value).parameters))
                known.setdefault(prefix + key, [set()])
    return known


def test_every_row_has_a_number_of_its_own():
    numbers = [row[0] for row in ROWS]
    assert len(numbers) > 90 and all(len(row) == 3 and NUMBER.fullmatch(row[0]) for row in ROWS)
    assert [number for number, count in Counter(numbers).items() if count > 1] == []


def test_functions_exist_with_the_arguments_named():
    for number, word in [(row[0], word) for row in ROWS for word in re.findall(r"`([^`]+)`", row[2])]:
        call = ast.parse(word, mode="eval").body
        name, given = (ast.unparse(call.func), call.keywords) if isinstance(call, ast.Call) else (word, [])
        found = definitions().get(name)
        assert found, f"{number}: {name} is nowhere in the code"
        assert any({keyword.arg for keyword in given} <= arguments for arguments in found), f"{number}: {word}"


def test_every_row_has_a_test_and_every_marker_a_row():
    assert {row[0] for row in ROWS} == set(proofs())


def test_names_outside_of_tables_exist():
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    words = set(re.findall(r"`([A-Za-z_]\w*)`", prose))
    known = {word for name, found in definitions().items() for word in set(name.split(".")).union(*found)}
    assert words and words - known == set()


def formulas(text):
    """The formulas of a page, as GitHub finds them: between one or two dollars, outside of code."""
    text = re.sub(r"^( *)(`{3,}).*?^\1\2$|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.finditer(r"\$\$(.+?)\$\$|(?<![\\$])\$(?![\s$])([^$]+?)(?<![\s\\])\$", text, re.DOTALL)
    return [(match[1] or match[2], bool(match[2])) for match in found]


def test_markdown_leaves_formulas_alone():
    r"""GitHub reads Markdown before formulas: it would take ``\,`` for a comma and ``)_i`` for emphasis."""
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        shown = re.sub("<[^>]*>", "|", MarkdownIt("commonmark").enable("table").render(text))
        shown = " ".join(html.unescape(shown).split())
        assert [formula for formula, _ in formulas(text) if " ".join(formula.split()) not in shown] == [], page
        assert [formula for formula, in_line in formulas(text) if in_line and "\n" in formula] == [], page
