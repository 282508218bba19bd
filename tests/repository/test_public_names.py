"""What dir(), completion and help() show of what users call from Python."""

import importlib
import inspect
import pydoc
import subprocess
import sys

import pytest

PACKAGES = ("paddle_rope", "paddle_rope.roformer", "paddle_rope.global_pointer", "tasks.ner")
# of each function: the arguments that help() has to name
FUNCTIONS = {
    "tasks.recipes:get_recipe": {"name"},
    "tasks.recipes:open_predictor": {"folder", "device", "batch_size", "show_progress"},
    "tasks.common.recipe:Recipe.train": {"config", "data"},
    "tasks.common.recipe:Recipe.resume": {"run_dir", "data"},
    "tasks.common.recipe:Recipe.evaluate": {"model_dir", "data", "device", "batch_size"},
    "tasks.common.export.exporter:export": {"exporter", "model_dirs", "output_dir", "format", "quantize", "check"},
    "tasks.ner.tuning:tune_model": {"model_dir", "data_file", "only"},
    "tasks.ner:NerPredictor": {"model_dir", "device", "batch_size", "max_tokens", "overlap", "show_progress"},
    "tasks.recipes:train": {"config"},
    "tasks.recipes:resume": {"folder", "recipe"},
}


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


@pytest.mark.parametrize("place", FUNCTIONS)
def test_help_names_the_arguments_and_says_what_they_are(place):
    module, _, name = place.partition(":")
    called = importlib.import_module(module)
    for part in name.split("."):
        called = getattr(called, part)
    assert set(inspect.signature(called).parameters) >= FUNCTIONS[place]
    shown = pydoc.plain(pydoc.render_doc(called))
    described = shown[shown.index("Args:") :] if "Args:" in shown else shown
    assert [argument for argument in FUNCTIONS[place] if argument not in described] == []
