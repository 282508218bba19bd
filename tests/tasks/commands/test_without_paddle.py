"""Where Paddle is not installed: what works, and the line that names what to install. Models of another recipe."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paddle_rope import CharTokenizer, RoFormerConfig, RoFormerModel
from tasks.classification.model import ClassificationConfig, ClassificationModel
from tasks.common.errors import InputError
from tasks.matching.model import MatchingConfig, MatchingModel
from tasks.ner.demo import UNSEEN_SENTENCES
from tasks.ner.model import NerConfig, NerModel
from tasks.recipes import get_predictor
from tests.helpers.exports import FORMATS, export, fails
from tests.helpers.verbs import verb
from tests.paddle_rope.roformer.small_models import randomise

REPOSITORY = Path(__file__).resolve().parents[3]
# Without what only Paddle's recipes need: the base installation has none of it.
WITHOUT_PADDLE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("paddle", "paddlenlp", "scipy", "matplotlib", "visualdl"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from tasks.commands.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""
SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
MODELS = {
    "ner": (NerModel, NerConfig, {"types": ["a"], "head_size": 8}),
    "classification": (ClassificationModel, ClassificationConfig, {"classes": ["x", "y"]}),
    "matching": (MatchingModel, MatchingConfig, {"architecture": "bi_encoder", "threshold": 0.5}),
}
LABELED = {
    "ner": [{"text": UNSEEN_SENTENCES[0], "label": {"a": {UNSEEN_SENTENCES[0][:2]: [[0, 1]]}}}],
    "classification": [{"text": text, "label": label} for text, label in zip(UNSEEN_SENTENCES, "xy")],
    "matching": [
        {"sentence1": "你好", "sentence2": text, "label": label} for label, text in enumerate(UNSEEN_SENTENCES[:2])
    ],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """dict from a recipe, or ``"encoder"``, to the folder of a model with random weights."""
    home, tokenizer = tmp_path_factory.mktemp("models"), CharTokenizer.from_corpus(UNSEEN_SENTENCES)
    kinds = {**MODELS, "encoder": (RoFormerModel, RoFormerConfig, {})}
    for recipe, (model, config, options) in kinds.items():
        tokenizer.save_pretrained(home / recipe)
        of_recipe = randomise(model(config(vocab_size=len(tokenizer), **SIZES, **options)))
        of_recipe.save_pretrained(home / recipe)
    return {recipe: home / recipe for recipe in kinds}


@pytest.fixture(scope="module")
def labeled(tmp_path_factory):
    """dict from a recipe to a labeled file."""
    home = tmp_path_factory.mktemp("data")
    files = {}
    for recipe, records in LABELED.items():
        files[recipe] = home / f"{recipe}.jsonl"
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        files[recipe].write_text(lines, encoding="utf-8")
    return files


def call(folder, *words):
    """The command line without paddle, in a process of its own."""
    (folder / "without_paddle.py").write_text(WITHOUT_PADDLE, encoding="utf-8")
    command = [sys.executable, str(folder / "without_paddle.py"), *map(str, words)]
    environment = {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("command", ["train", "resume", "predict", "predict many", "tune", "export"])
def test_what_needs_paddle_says_what_to_install(folders, labeled, tmp_path, command):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("recipe: ner\ntrain_file: x", encoding="utf-8")
    config = f"recipe: ner\ntrain_file: {labeled['ner']}\noutput_dir: new"
    (tmp_path / "train.yaml").write_text(config, encoding="utf-8")
    predict = ["predict", folders["ner"], "--input", labeled["ner"], "--output", "found"]
    words = {
        "train": ["train", "train.yaml"],
        "resume": ["train", "--resume", "run"],
        "predict": predict,
        "predict many": [*predict, "--processes", "1"],
        "tune": ["tune", folders["ner"], labeled["ner"]],
        "export": ["export", folders["ner"], "--output", "exported"],
    }
    done = call(tmp_path, *words[command])
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: paddle is not installed") and len(done.stderr.splitlines()) == 1
    assert "pip install" in done.stderr


def test_data_are_inspected(labeled, tmp_path):
    done = call(tmp_path, "inspect", labeled["ner"], "--output", "found.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["splits"]["train"]["texts"] == 1


@pytest.mark.skipif("onnx" not in FORMATS, reason="paddle2onnx wants Paddle 3")
@pytest.mark.parametrize("recipe", MODELS)
def test_an_onnx_model_is_evaluated_as_with_paddle(folders, labeled, tmp_path, recipe, capsys):
    folder = export(tmp_path / "exported", "onnx", folders[recipe])
    capsys.readouterr()
    words = ["evaluate", folder, labeled[recipe], "--output"]
    done = call(tmp_path, *words, tmp_path / "without.json")
    assert done.returncode == 0, done.stderr
    assert verb().main([*map(str, words), str(tmp_path / "with.json")]) == 0
    found, expected = ((tmp_path / name).read_text(encoding="utf-8") for name in ("without.json", "with.json"))
    assert found == expected
    assert done.stdout == capsys.readouterr().out


def test_the_graph_of_paddle_needs_paddle(folders, labeled, tmp_path):
    folder = export(tmp_path / "exported", "paddle", folders["classification"])
    done = call(tmp_path, "evaluate", folder, labeled["classification"])
    assert done.returncode == 2 and "pip install" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("recipe", MODELS)
def test_a_predictor_of_another_recipe_names_the_recipe(folders, recipe):
    other = next(name for name in reversed(MODELS) if name != recipe)
    with pytest.raises(InputError, match=f"is a model of {recipe}, not of {other}"):
        get_predictor(other)(folders[recipe])


@pytest.mark.parametrize(
    "recipe, words, message",
    [
        ("matching", ["predict", "--format", "bio"], "--format: {} is a model of matching, not of ner; leave it out"),
        ("classification", ["predict", "--max_tokens", "9"], "is a model of classification, not of ner or matching"),
        ("ner", ["predict", "--embed"], "--embed: {} is a model of ner, not of matching"),
        ("matching", ["predict", "--embed"], "--embed writes an array: give --output FILE.npy"),
        ("matching", ["tune", "dev.tsv"], "is a model of matching; this works with models of ner"),
        ("classification", ["select", "--count", "1"], "is a model of classification; this works with models of ner"),
    ],
)
def test_what_a_recipe_does_not_have_is_refused(folders, capsys, recipe, words, message):
    verb_, *rest = words
    assert message.format(folders[recipe]) in fails(verb(verb_, str(folders[recipe])), capsys, *rest)


def test_several_models_must_be_of_ner(folders, capsys):
    models = [folders["matching"], folders["matching"]]
    assert "only NER models compute together" in fails(verb("predict"), capsys, *models)


def test_an_encoder_is_said_to_be_one(folders, labeled, capsys):
    message = fails(verb("evaluate"), capsys, folders["encoder"], labeled["ner"])
    assert "is an encoder" in message and f"--pretrained {folders['encoder']}" in message
