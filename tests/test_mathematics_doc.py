"""docs/mathematics.md names functions, tests, files and figures that exist."""

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENT = REPOSITORY / "docs" / "mathematics.md"
# Comments hold drafts.
TEXT = re.sub(r"<!--.*?-->", "", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)
HEADER = ["function", "tests (`test_...`)"]  # after the column of equations
FILE = re.compile(r"(?:paddle_rope|tests|tools|docs|tasks)/[\w/]+\.\w+")


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
                found[prefix + node.name] = found.get(f"{node.name}.__init__", set())
            elif isinstance(node, ast.Assign):
                found.update({prefix + target.id: set() for target in node.targets if isinstance(target, ast.Name)})

    visit(ast.parse((REPOSITORY / path).read_text(encoding="utf-8")).body)
    return found


def named_in(cell, files):
    """The code words of a cell, each with the files it may be in: the one named before it in the cell, or ``files``."""
    for word in re.findall(r"`([^`]+)`", cell):
        if FILE.fullmatch(word):
            files = [word]
        else:
            yield word, files


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def rows():
    """``(line, cells, files above)`` of the tables of functions and tests."""
    above, in_table, found = "", False, []
    for line in TEXT.splitlines():
        if line.startswith("#"):
            above = ""
        if not line.startswith("|"):
            above, in_table = above + line + "\n", False
        elif cells_of(line)[1:] == HEADER:
            in_table = True
        elif in_table and not line.startswith("|---"):
            found.append((line, cells_of(line), FILE.findall(above)))
    return found


ROWS = rows()
every_row = pytest.mark.parametrize("line, cells, files", ROWS, ids=[f"row {number}" for number in range(len(ROWS))])


def test_no_table_of_functions_is_overlooked():
    headers = [line for line in TEXT.splitlines() if line.startswith("|") and "function" in line and "tests" in line]
    assert [line for line in headers if cells_of(line)[1:] != HEADER] == []
    assert len(headers) > 12 and len(ROWS) > 4 * len(headers)


@every_row
def test_functions_exist_with_the_arguments_named(line, cells, files):
    assert len(cells) == 3
    modules = [file for file in files if file.startswith(("paddle_rope/", "tasks/"))]
    for word, where in named_in(cells[1], modules):
        call = ast.parse(word, mode="eval").body
        name, given = (ast.unparse(call.func), call.keywords) if isinstance(call, ast.Call) else (word, [])
        known = [definitions(file)[name] for file in where if name in definitions(file)]
        assert known, f"{name} is not in {', '.join(where)}"
        assert {keyword.arg for keyword in given} <= known[0], word


@every_row
def test_tests_exist(line, cells, files):
    words = list(named_in(cells[2], [file for file in files if file.startswith("tests/")]))
    assert words
    for word, where in words:
        assert any(f"test_{word}" in definitions(file) for file in where), f"test_{word} is not in {', '.join(where)}"


def test_names_outside_of_tables_exist():
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    known = set()
    for path in (REPOSITORY / "paddle_rope").rglob("*.py"):
        for name, arguments in definitions(path).items():
            known |= {name, *arguments}
    words = set(re.findall(r"`([A-Za-z_]\w*)`", prose)) - {"test_"}
    assert words
    assert words - known == set()


def test_files_named_exist():
    files = FILE.findall(TEXT)
    assert len(files) > 50
    assert [file for file in files if not (REPOSITORY / file).is_file()] == []


def test_figures_and_links_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", TEXT)
    figures = [link for link in links if link.endswith(".png")]
    headings = re.findall(r"^#+ (.*)", TEXT, re.MULTILINE)
    anchors = {"#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert len(figures) >= 3
    assert [link for link in links if link not in anchors and not (DOCUMENT.parent / link).is_file()] == []
