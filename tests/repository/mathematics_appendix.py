"""The tests that prove each equation of docs/concepts/mathematics/, and the page that lists them.

    python -m tests.repository.mathematics_appendix

writes docs/concepts/mathematics/tests.md anew. A test names the equations that it proves, by the numbers of their rows:
``@pytest.mark.equation("1.1", "2.3")``.
"""

import ast
import re
from functools import lru_cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TESTS = REPOSITORY / "tests"
CHAPTERS = REPOSITORY / "docs" / "concepts" / "mathematics"
APPENDIX = CHAPTERS / "tests.md"
NUMBER = re.compile(r"\d+\.\d+")
HEAD = """\
# Tests of the equations

[From the equations to the functions](index.md)

`python -m tests.repository.mathematics_appendix` writes this page. The numbers are the rows of the chapters. Tests are
listed after their file in `tests/`, without the prefix `test_`."""


def chapters():
    """The pages with equations, in the order of the numbers of their rows."""
    first = re.compile(r"^\| (\d+)\.", re.MULTILINE)
    pages = {page: first.search(page.read_text(encoding="utf-8")) for page in CHAPTERS.glob("*.md") if page != APPENDIX}
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
    """The text of tests.md: the chapters and their equations, with the tests."""
    tests, lines, section = proofs(), [HEAD], None
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


if __name__ == "__main__":
    APPENDIX.write_text(appendix(), encoding="utf-8")
