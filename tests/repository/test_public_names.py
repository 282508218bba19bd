"""What users call from Python: its names, its help, and the examples in the docstrings of paddle_rope, which run."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import pydoc
import re
import warnings

import pytest

import paddle_rope
from tests.conftest import REPOSITORY
from tests.repository.test_mathematics_doc import ROWS

PACKAGES = ("paddle_rope", "paddle_rope.roformer", "paddle_rope.tasks.ner")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(paddle_rope.__path__, "paddle_rope.")
    if not module.name.endswith("__main__") and not module.name.startswith("paddle_rope.tasks")
]
MODULES += ["paddle_rope.tasks.experiments.long_range_decay", "tests.paddle_rope.reference"]
# of the API, and the functions and classes in the tables of the mathematics
OF_TABLES = {word.partition("(")[0] for row in ROWS for word in re.findall(r"`([^`]+)`", row[2])}
OF_TABLES = {name for name in OF_TABLES if re.fullmatch(r"(reference\.)?[A-Za-z]\w*", name)}
DOCUMENTED = sorted({*(f"paddle_rope.{name}" for name in paddle_rope.__all__), *OF_TABLES})
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
