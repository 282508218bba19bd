"""What an import of the library loads, and what it changes."""

import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.tasks.commands.conftest import MODELS, write_models

PREDICT = {
    "ner": "predictor(['医院'])",
    "matching": "predictor.score([('医', '院')])",
    "classification": "predictor(['医院'])",
}


def run(program, **environment):
    """What a program prints on standard output, in lines; it must end well and silently."""
    environment = environment or dict(os.environ)
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def loaded_by(program):
    return run(f"import sys; {program}; print(*({{'paddle', 'paddlenlp', 'jieba'}} & sys.modules.keys()))")[-1].split()


@pytest.mark.slow
@pytest.mark.parametrize("program, loaded", [
    ("import paddle_rope, paddle_rope.options; dir(paddle_rope)", []),
    ("from paddle_rope import prepare_process; prepare_process()", []),
    ("from paddle_rope import CharTokenizer, WordTokenizer, Encoding, load_tokenizer, RoFormerConfig", []),
    ("from paddle_rope import LinearScaling; import paddle_rope.tasks.experiments.long_range_decay", []),
    ("from paddle_rope import RotaryPositionEmbedding, linear_attention, EfficientGlobalPointer", ["paddle"]),
    ("from paddle_rope import RoFormerConfig as C, RoFormerModel; RoFormerModel(C(9, 8, 1, 2, 8))", ["paddle"]),
    ("from paddle_rope.tasks.ner import NerPredictor; import paddle_rope.tasks.ner.data.reading", []),
    ("from paddle_rope.tasks.ner.features import WordFeatures; WordFeatures(['dictionary'], {})('他在', [(0, 1)])", []),
    ("import paddle_rope.tasks.ner.recipe", ["jieba", "paddle", "paddlenlp"]),
])  # fmt: skip
def test_an_import_loads_no_more_than_it_needs(program, loaded):
    assert sorted(loaded_by(program)) == loaded


@pytest.mark.slow
@pytest.mark.parametrize("recipe", PREDICT)
def test_prediction_with_a_trained_folder_imports_no_paddlenlp(recipe, tmp_path):
    write_models(tmp_path, {recipe: MODELS[recipe]})
    program = f"from paddle_rope.tasks.recipes import load; predictor = load({str(tmp_path / recipe)!r})"
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
