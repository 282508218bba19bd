"""What dir(), completion and help() show of what users call from Python."""

import importlib
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("paddle_rope", "paddle_rope.roformer", "tasks.ner")
CALLED = (
    *("tasks.recipes:get_recipe", "tasks.recipes:open_predictor", "tasks.recipes:train", "tasks.recipes:resume"),
    *(f"tasks.common.recipe:Recipe.{name}" for name in ("train", "resume", "evaluate")),
    *("tasks.common.export.exporter:export", "tasks.ner.tuning:tune_model", "tasks.ner:NerPredictor"),
    *("paddle_rope:RoFormerModel.from_pretrained", "paddle_rope:RoFormerForCausalLM.generate"),
)


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_what_is_public_and_nothing_else(package):
    module = importlib.import_module(package)
    shown = [name for name in dir(module) if not name.startswith("__")]
    assert shown == sorted(module.__all__)
    assert all(getattr(module, name) is not None for name in shown)
    assert {"__doc__", "__name__", "__all__"} <= set(dir(module))


def test_dir_imports_no_paddle():
    code = "import sys, paddle_rope; assert 'RoFormerModel' in dir(paddle_rope); assert 'paddle' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_page_of_the_api_has_every_public_name():
    page = (Path(__file__).resolve().parents[2] / "docs/reference/python-api.md").read_text(encoding="utf-8")
    shown = re.findall(r"[\w.]+", " ".join(re.findall("<!-- api: (.*?) -->", page, re.DOTALL)))
    assert {f"paddle_rope.{name}" for name in importlib.import_module("paddle_rope").__all__} <= set(shown)
    for place in shown:
        module, name = place.rsplit(".", 1)
        if module.endswith("Recipe"):
            continue
        assert hasattr(importlib.import_module(module), name), place


@pytest.mark.parametrize("place", CALLED)
def test_help_says_what_every_argument_is(place):
    module, _, name = place.partition(":")
    called = importlib.import_module(module)
    for part in name.split("."):
        called = getattr(called, part)
    shown = pydoc.plain(pydoc.render_doc(called))
    described = shown[shown.index("Args:") :] if "Args:" in shown else shown
    arguments = [name for name in inspect.signature(called).parameters if name != "self"]
    assert arguments and [name for name in arguments if name not in described] == []
