"""What an import of the library loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import paddle_rope
import paddle_rope.roformer
from paddle_rope import CharTokenizer
from tasks.classification.model import ClassificationModel
from tasks.matching.model import MatchingModel
from tasks.ner.model import NerModel

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = ("paddle", "paddlenlp")


@pytest.mark.parametrize(
    "program, loaded",
    [
        ("import paddle_rope", []),
        ("import paddle_rope.options", []),
        ("from paddle_rope import prepare_process; prepare_process()", []),
        ("from paddle_rope import CharTokenizer, WordTokenizer, Encoding, load_tokenizer", []),
        ("from paddle_rope.roformer import CharTokenizer, load_tokenizer", []),
        ("from paddle_rope import LinearScaling; import paddle_rope.long_range_decay", []),
        (
            "from paddle_rope import RotaryPositionEmbedding, linear_attention, EfficientGlobalPointer; "
            "from paddle_rope import MultiHeadAttention, decode_spans, alibi_bias",
            ["paddle"],
        ),
        ("from tasks.ner import NerPredictor", []),
        ("import tasks.ner.recipe", ["paddle", "paddlenlp"]),
        ("from paddle_rope import RoFormerConfig", []),
        (
            "from paddle_rope.roformer import RoFormerConfig, RoFormerModel; "
            "RoFormerModel(RoFormerConfig(9, 8, 1, 2, 8))",
            ["paddle"],
        ),
    ],
)
def test_an_import_loads_no_more_than_it_needs(program, loaded):
    program = f"import sys; {program}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == loaded


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
    environment["PYTHONPATH"] = str(REPOSITORY)
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[1.0, 1.0]\n", "")


def test_an_import_changes_nothing_in_the_environment():
    program = "import os; before = dict(os.environ); import paddle_rope, paddle_rope.roformer.config; "
    program += "from paddle_rope import CharTokenizer; print(dict(os.environ) == before)"
    environment = {"HOME": "/nowhere", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    "model_class, options, predict",
    [
        (NerModel, {"types": ["place"]}, "from tasks.ner import NerPredictor; NerPredictor(folder)(['医院'])"),
        (
            MatchingModel,
            {},
            "from tasks.matching.prediction import MatchingPredictor; MatchingPredictor(folder).score([('医', '院')])",
        ),
        (
            ClassificationModel,
            {"classes": ["a", "b"]},
            "from tasks.classification.prediction import Classifier; Classifier(folder)(['医院'])",
        ),
    ],
    ids=["ner", "matching", "classification"],
)
def test_prediction_with_a_trained_folder_imports_no_paddlenlp(model_class, options, predict, tmp_path):
    tokenizer = CharTokenizer.from_corpus(["护士长在医院。"])
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    model_class(model_class.config_class(vocab_size=len(tokenizer), **sizes, **options)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    program = (
        f"import sys; folder = {str(tmp_path)!r}; {predict}; print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['paddle']"


@pytest.mark.parametrize("package", [paddle_rope, paddle_rope.roformer], ids=lambda package: package.__name__)
def test_every_name_is_there_and_others_are_not(package):
    assert len(package.__all__) > 9
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'RotaryEmbedding'"):
        _ = package.RotaryEmbedding
