"""Names in docs/concepts/mathematics/ exist and have tests, and its appendix is up to date; what users call from
Python has help, and examples in the docstrings of paddle_rope, which run."""

import ast
import contextlib
import doctest
import html
import importlib
import inspect
import pkgutil
import pydoc
import re
import warnings
from functools import lru_cache

import pytest
from markdown_it import MarkdownIt

import paddle_rope
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


def test_every_row_has_a_number_of_its_own_and_a_test_and_every_marker_a_row():
    numbers = [row[0] for row in ROWS]
    assert len(numbers) > 90 and all(len(row) == 3 and NUMBER.fullmatch(row[0]) for row in ROWS)
    assert [number for number in set(numbers) if numbers.count(number) > 1] == []
    assert set(numbers) == set(proofs())


def test_functions_exist_with_the_arguments_named():
    for number, word in [(row[0], word) for row in ROWS for word in re.findall(r"`([^`]+)`", row[2])]:
        call = ast.parse(word, mode="eval").body
        name, given = (ast.unparse(call.func), call.keywords) if isinstance(call, ast.Call) else (word, [])
        found = definitions().get(name)
        assert found, f"{number}: {name} is nowhere in the code"
        assert any({keyword.arg for keyword in given} <= arguments for arguments in found), f"{number}: {word}"


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


# ---- what users call from Python
PACKAGES = ("paddle_rope", "paddle_rope.roformer", "paddle_rope.tasks.ner")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(paddle_rope.__path__, "paddle_rope.")
    if not module.name.endswith("__main__") and not module.name.startswith("paddle_rope.tasks")
]
MODULES += ["paddle_rope.tasks.experiments.long_range_decay", "tests.paddle_rope.reference"]
# of the API, and the functions and classes in the tables of the mathematics
OF_TABLES = {word.partition("(")[0] for row in ROWS for word in re.findall(r"`([^`]+)`", row[2])}
DOCUMENTED = [f"paddle_rope.{name}" for name in paddle_rope.__all__]
DOCUMENTED += sorted(name for name in OF_TABLES if re.fullmatch(r"(reference\.)?[A-Za-z]\w*", name))
CALLED = (
    *(f"paddle_rope.tasks.recipes:{name}" for name in ("load", "train", "train_config", "resume", "evaluate")),
    *("paddle_rope.tasks.common.export.exporter:export", "paddle_rope.tasks.ner.tuning:tune_model"),
    *("paddle_rope.tasks.ner:NerPredictor", "paddle_rope:RoFormerModel.from_pretrained"),
    "paddle_rope:RoFormerForCausalLM.generate",
)


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_what_is_public_and_nothing_else(package):
    module = importlib.import_module(package)
    shown = [name for name in dir(module) if not name.startswith("__")]
    assert shown == sorted(module.__all__) and {"__doc__", "__name__", "__all__"} <= set(dir(module))
    assert [name for name in shown if getattr(module, name).__name__ != name] == []
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'RotaryEmbedding'"):
        _ = module.RotaryEmbedding
    checked = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.If)]
    imports = [one for block in checked for one in block.body if isinstance(one, ast.ImportFrom)]
    assert sorted(alias.name for one in imports for alias in one.names) == shown  # for type checkers


def test_the_page_of_the_api_has_every_public_name():
    page = (REPOSITORY / "docs/reference/python-api.md").read_text(encoding="utf-8")
    shown = re.findall(r"[\w.]+", " ".join(re.findall("<!-- api: (.*?) -->", page, re.DOTALL)))
    assert {f"paddle_rope.{name}" for name in paddle_rope.__all__} <= set(shown)
    assert [place for place in shown if pydoc.locate(place) is None] == []


def test_help_says_what_every_argument_is():
    for place in CALLED:
        called = pkgutil.resolve_name(place)
        shown = pydoc.plain(pydoc.render_doc(called))
        described = shown[shown.index("Args:") :] if "Args:" in shown else shown
        arguments = [name for name in inspect.signature(called).parameters if name != "self"]
        assert arguments and [name for name in arguments if name not in described] == [], place


def test_examples_give_what_they_show():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in map(importlib.import_module, MODULES):
            assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0, module.__name__


def test_each_name_that_a_document_names_has_an_example():
    def definitions(place):
        module, _, name = place.rpartition(".")
        if module == "paddle_rope":
            return [getattr(paddle_rope, name)]
        modules = [importlib.import_module(one) for one in MODULES if one.endswith(module)]
        return [vars(one)[name] for one in modules if getattr(vars(one).get(name), "__module__", "") == one.__name__]

    assert [name for name in DOCUMENTED for one in definitions(name) if ">>>" not in (one.__doc__ or "")] == []
