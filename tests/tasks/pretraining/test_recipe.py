"""Pretraining runs: what they leave and what is refused; how they repeat and resume: test_recipes.py."""

import math
import shutil

import numpy as np
import pytest

from paddle_rope.roformer import CharTokenizer, RoFormerForMaskedLM, WordTokenizer, load_tokenizer
from paddle_rope.tasks.common.texts.documents import hold_out, read_documents
from paddle_rope.tasks.common.word_vectors import VECTORS_FILE, WORDS_FILE, WordVectors
from paddle_rope.tasks.pretraining.arguments import parse_stages
from paddle_rope.tasks.pretraining.batches import DevBatches, WholeWordMasking, tokenize
from paddle_rope.tasks.pretraining.recipe import evaluate_model
from tests.helpers import runs
from tests.tasks.tiny_recipes import KEYS

STAGES = "48x4x7,64x2x5,16x8x6"  # rows of the last cut sentences, so that they score otherwise
TINY = {
    **KEYS["pretraining"], "recipe": "pretraining", "stages": STAGES, "dev_fraction": 0.1,
    "gradient_accumulation_steps": 1, "first_hidden_share": 0.15,
}  # fmt: skip
del TINY["vocab_min_count"]


@pytest.fixture(scope="module")
def config(corpus_file):
    return {**TINY, "text_files": corpus_file}


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory):
    """A run that was not interrupted. Do not change its files."""
    return runs.train(config, tmp_path_factory.mktemp("whole") / "run")


def test_recorded_scores_are_those_of_the_weights_at_the_length_of_each_stage(whole, corpus_file):
    rows = whole.metrics["stages"]
    assert [(row["max_tokens"], row["batch_size"], row["steps"]) for row in rows] == parse_stages(STAGES)
    for row in rows:
        assert 0 < row["dev_loss"] < 2 * math.log(1000) and 0 <= row["dev_accuracy"] <= 1
        assert row["million_tokens"] == row["max_tokens"] * row["batch_size"] * row["steps"] / 1e6
    assert rows[-1]["dev_loss"] < rows[0]["dev_loss"]
    assert whole.metrics["dev"] == {"loss": rows[-1]["dev_loss"], "accuracy": rows[-1]["dev_accuracy"]}
    train, dev = hold_out(read_documents([corpus_file]), whole.config["dev_fraction"])
    tokenizer = load_tokenizer(whole.model)
    assert tokenizer.vocab == CharTokenizer.from_corpus(train, min_count=2).vocab
    stream = tokenize(dev, tokenizer, "", show_progress=False)
    batches = DevBatches(stream, parse_stages(STAGES)[-1], tokenizer, WholeWordMasking(tokenizer))
    scores = evaluate_model(RoFormerForMaskedLM.from_pretrained(whole.model), batches)
    assert scores == {name: pytest.approx(value, rel=1e-5) for name, value in whole.metrics["dev"].items()}


def test_word_vectors_of_the_folder_are_kept(config, whole, tmp_path):
    folder = shutil.copytree(whole.model, tmp_path / "folder")
    (folder / "SHA256SUMS").unlink()
    WordVectors(["北京"], np.arange(64).reshape(1, 64)).save_pretrained(folder)
    given = {key: config[key] for key in ("recipe", "text_files", "dev_fraction", "device")}
    left = runs.train(given, tmp_path / "run", pretrained=folder, stages="32x4x1")
    assert all((left.model / name).read_bytes() == (folder / name).read_bytes() for name in (WORDS_FILE, VECTORS_FILE))


@pytest.mark.parametrize("word_vocab_file", ["small"], indirect=True)
def test_words_are_tokens_with_a_word_vocabulary(config, tmp_path, word_vocab_file):
    options = {"tokenizer": "word", "vocab_file": word_vocab_file, "stages": "32x4x1", "num_hidden_layers": 2}
    left = runs.train(config, tmp_path / "run", **options, attention="linear,softmax")
    tokenizer = load_tokenizer(left.model)
    assert isinstance(tokenizer, WordTokenizer)
    assert tokenizer.vocab == word_vocab_file.read_text(encoding="utf-8").split("\n")[:-1]
    assert left.model_config["attention"] == ["linear", "softmax"]


def test_held_out_files_are_evaluated_on_and_not_trained_on(config, corpus_file, tmp_path, capsys):
    documents = read_documents([corpus_file])
    (tmp_path / "dev.txt").write_text("\n".join(["新的一句。", *documents[:3]]), encoding="utf-8")
    files = {"dev_files": f"{tmp_path / 'dev.txt'},{tmp_path / 'more.txt'}", "stages": "32x4x1"}
    (tmp_path / "more.txt").write_text("再来一句。", encoding="utf-8")
    left = runs.train(config, tmp_path / "run", **files)
    shown = capsys.readouterr().out
    assert f"train: {len(documents) - 3} documents" in shown and "dev: 5 documents" in shown
    assert load_tokenizer(left.model).vocab == CharTokenizer.from_corpus(documents[3:], min_count=2).vocab
