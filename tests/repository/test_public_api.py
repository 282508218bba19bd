"""What users call from Python: names, help and examples; and what an import loads and changes."""

import doctest
import importlib
import inspect
import os
import pkgutil
import pydoc
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import paddle_rope
from tests.tasks.commands.conftest import MODELS, write_models

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("paddle_rope", "paddle_rope.roformer", "tasks.ner")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(paddle_rope.__path__, "paddle_rope.")
    if not module.name.endswith("__main__")
]
CALLED = (
    *("tasks.recipes:get_recipe", "tasks.recipes:open_predictor", "tasks.recipes:train", "tasks.recipes:resume"),
    *(f"tasks.common.recipe:Recipe.{name}" for name in ("train", "resume", "evaluate")),
    *("tasks.common.export.exporter:export", "tasks.ner.tuning:tune_model", "tasks.ner:NerPredictor"),
    *("paddle_rope:RoFormerModel.from_pretrained", "paddle_rope:RoFormerForCausalLM.generate"),
)
PREDICT = {
    "ner": "predictor(['医院'])",
    "matching": "predictor.score([('医', '院')])",
    "classification": "predictor(['医院'])",
}


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_what_is_public_and_nothing_else(package):
    module = importlib.import_module(package)
    shown = [name for name in dir(module) if not name.startswith("__")]
    assert shown == sorted(module.__all__) and {"__doc__", "__name__", "__all__"} <= set(dir(module))
    assert [name for name in shown if getattr(module, name).__name__ != name] == []
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'RotaryEmbedding'"):
        _ = module.RotaryEmbedding


def test_the_page_of_the_api_has_every_public_name():
    page = (REPOSITORY / "docs/reference/python-api.md").read_text(encoding="utf-8")
    shown = re.findall(r"[\w.]+", " ".join(re.findall("<!-- api: (.*?) -->", page, re.DOTALL)))
    assert {f"paddle_rope.{name}" for name in paddle_rope.__all__} <= set(shown)
    assert [place for place in shown if pydoc.locate(place) is None] == []


@pytest.mark.parametrize("place", CALLED)
def test_help_says_what_every_argument_is(place):
    called = pkgutil.resolve_name(place)
    shown = pydoc.plain(pydoc.render_doc(called))
    described = shown[shown.index("Args:") :] if "Args:" in shown else shown
    arguments = [name for name in inspect.signature(called).parameters if name != "self"]
    assert arguments and [name for name in arguments if name not in described] == []


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("package", ["", ".attention", ".global_pointer", ".native", ".roformer"])
def test_each_public_name_has_an_example(package):
    module = importlib.import_module(f"paddle_rope{package}")
    public = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    assert [name for name, one in public.items() if callable(one) and ">>>" not in (one.__doc__ or "")] == []


# ---- imports


def run(program, **environment):
    """What a program prints on standard output, in lines; it must end well and silently."""
    environment = environment or dict(os.environ)
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def loaded_by(program):
    return run(f"import sys; {program}; print(*({{'paddle', 'paddlenlp'}} & sys.modules.keys()))")[-1].split()


@pytest.mark.slow
@pytest.mark.parametrize("program, loaded", [
    ("import paddle_rope, paddle_rope.options; dir(paddle_rope)", []),
    ("from paddle_rope import prepare_process; prepare_process()", []),
    ("from paddle_rope import CharTokenizer, WordTokenizer, Encoding, load_tokenizer, RoFormerConfig", []),
    ("from paddle_rope import LinearScaling; import paddle_rope.long_range_decay", []),
    ("from paddle_rope import RotaryPositionEmbedding, linear_attention, EfficientGlobalPointer", ["paddle"]),
    ("from paddle_rope import RoFormerConfig as C, RoFormerModel; RoFormerModel(C(9, 8, 1, 2, 8))", ["paddle"]),
    ("from tasks.ner import NerPredictor", []),
    ("import tasks.ner.recipe", ["paddle", "paddlenlp"]),
])  # fmt: skip
def test_an_import_loads_no_more_than_it_needs(program, loaded):
    assert sorted(loaded_by(program)) == loaded


@pytest.mark.slow
@pytest.mark.parametrize("recipe", PREDICT)
def test_prediction_with_a_trained_folder_imports_no_paddlenlp(recipe, tmp_path):
    write_models(tmp_path, {recipe: MODELS[recipe]})
    program = f"from tasks.recipes import open_predictor; predictor = open_predictor({str(tmp_path / recipe)!r})"
    assert loaded_by(f"{program}; {PREDICT[recipe]}") == ["paddle"]


def test_a_static_graph_is_made_without_notes_of_paddle(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import paddle_rope\nfrom paddle_rope import RotaryPositionEmbedding\nimport paddle\n"
        "@paddle.jit.to_static(input_spec=[paddle.static.InputSpec([2])], full_graph=True)\n"
        "def graph(x):\n"
        "    return x + paddle.zeros([2])\n"
        "print(graph(paddle.ones([2])).tolist())\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GLOG_minloglevel"}
    assert run(f"import runpy; runpy.run_path({str(program)!r})", **environment) == ["[1.0, 1.0]"]


def test_an_import_changes_nothing_in_the_environment():
    program = "import os; before = dict(os.environ); import paddle_rope, paddle_rope.roformer.config; "
    program += "from paddle_rope import CharTokenizer; print(dict(os.environ) == before)"
    assert run(program, HOME="/nowhere", PATH=os.environ["PATH"]) == ["True"]
