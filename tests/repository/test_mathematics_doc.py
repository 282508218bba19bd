"""docs/concepts/mathematics/ names functions, files, figures and tests that exist; its appendix is up to date."""

import ast
import html
import re
from collections import Counter
from functools import lru_cache

import pytest
from markdown_it import MarkdownIt

from tests.repository.mathematics_appendix import APPENDIX, NUMBER, REPOSITORY, appendix, cells_of, chapters, proofs

TEXT = "\n".join(page.read_text(encoding="utf-8") for page in chapters())
FILE = re.compile(r"(?:paddle_rope|tests|tools|docs|tasks)/[\w/]+\.\w+")
TABLES = re.findall(r"^(\|.*)\n\|---\S*\n((?:\|.*\n?)+)", TEXT, re.MULTILINE)  # (header, rows)
ROWS = [cells_of(line) for head, lines in TABLES if cells_of(head)[-1] == "function" for line in lines.splitlines()]
every_row = pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])


@lru_cache
def definitions(path):
    """``{"name" or "Class.name": names of its arguments}`` of functions, classes and assignments in a Python file."""
    found = {}

    def arguments(function):
        given = function.args
        return {argument.arg for argument in given.posonlyargs + given.args + given.kwonlyargs}

    def visit(nodes, prefix=""):
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                found[prefix + node.name] = arguments(node)
            elif isinstance(node, ast.ClassDef):
                visit(node.body, f"{node.name}.")
                parents = [f"{node.name}.__init__", *(ast.unparse(base) for base in node.bases)]
                found[prefix + node.name] = next((found[name] for name in parents if name in found), set())
            elif isinstance(node, ast.ImportFrom):
                found.update({name.asname: set() for name in node.names if name.asname})
            elif isinstance(node, ast.Assign):
                found.update({prefix + target.id: set() for target in node.targets if isinstance(target, ast.Name)})

    visit(ast.parse((REPOSITORY / path).read_text(encoding="utf-8")).body)
    return found


@lru_cache
def known_in(package):
    """``{name: [arguments of each definition]}`` over the files of a package, wherever in it a function lives."""
    known = {}
    for path in sorted((REPOSITORY / package).rglob("*.py")):
        prefix = "reference." if path.stem == "reference" else ""
        for name, arguments in definitions(path).items():
            known.setdefault(prefix + name, []).append(arguments)
    return known


def test_every_row_has_a_number_of_its_own():
    numbers = [row[0] for row in ROWS]
    assert len(numbers) > 90 and all(len(row) == 3 and NUMBER.fullmatch(row[0]) for row in ROWS)
    assert [number for number, count in Counter(numbers).items() if count > 1] == []


@every_row
def test_functions_exist_with_the_arguments_named(row):
    for word in re.findall(r"`([^`]+)`", row[2]):
        call = ast.parse(word, mode="eval").body
        name, given = (ast.unparse(call.func), call.keywords) if isinstance(call, ast.Call) else (word, [])
        found = known_in("paddle_rope").get(name) or known_in("tasks/ner").get(name)
        assert found, f"{name} is nowhere in paddle_rope or tasks/ner"
        assert any({keyword.arg for keyword in given} <= arguments for arguments in found), word


def test_every_row_has_a_test_and_every_marker_a_row():
    assert {row[0] for row in ROWS} == set(proofs())


def test_the_appendix_is_up_to_date():
    assert APPENDIX.read_text(encoding="utf-8") == appendix(), "run python -m tests.repository.mathematics_appendix"


def test_names_outside_of_tables_exist():
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    words = set(re.findall(r"`([A-Za-z_]\w*)`", prose))
    known = {word for name, found in known_in("paddle_rope").items() for word in (name, *set().union(*found))}
    assert words and words - known == set()


def test_files_named_exist():
    files = FILE.findall(TEXT)
    assert len(files) >= 5
    assert [file for file in files if not (REPOSITORY / file).is_file()] == []


def formulas(text):
    """The formulas of a page, as GitHub finds them: between one or two dollars, outside of code."""
    text = re.sub(r"^( *)(`{3,}).*?^\1\2$|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.finditer(r"\$\$(.+?)\$\$|(?<![\\$])\$(?![\s$])([^$]+?)(?<![\s\\])\$", text, re.DOTALL)
    return [(match[1] or match[2], bool(match[2])) for match in found]


@pytest.mark.parametrize("page", sorted((REPOSITORY / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_markdown_leaves_formulas_alone(page):
    r"""GitHub reads Markdown before formulas: it would take ``\,`` for a comma and ``)_i`` for emphasis."""
    text = page.read_text(encoding="utf-8")
    shown = re.sub("<[^>]*>", "|", MarkdownIt("commonmark").enable("table").render(text))
    shown = " ".join(html.unescape(shown).split())
    assert [formula for formula, _ in formulas(text) if " ".join(formula.split()) not in shown] == []
    assert [formula for formula, in_line in formulas(text) if in_line and "\n" in formula] == []
