"""Pretraining runs: what they leave, how they resume, where they start, what is refused."""

import csv
import logging
import math
from functools import partial

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file

from paddle_rope.roformer import CharTokenizer, RoFormerForMaskedLM, WordTokenizer, load_tokenizer
from tasks.commands.main import main
from tasks.common.texts.documents import hold_out, read_documents
from tasks.common.training.checkpoints import last_checkpoint
from tasks.pretraining.arguments import parse_stages
from tasks.pretraining.batches import DevBatches, WholeWordMasking
from tasks.pretraining.packing import tokenize
from tasks.pretraining.recipe import evaluate_model
from tests.helpers import runs
from tests.helpers.runs import power_cut

STAGES = "48x4x7,16x8x6,64x2x5"
ENDS = (7, 13, 18)
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
TINY = {
    "recipe": "pretraining",
    "stages": STAGES,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "dev_fraction": 0.1,
    "learning_rate": 1e-2,
    "logging_steps": 2,
    "save_steps": 5,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def without_sizes(corpus_file, tmp_path_factory):
    """A configuration that takes its sizes from a pretrained folder."""
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(yaml.safe_dump({**TINY, "text_files": [str(corpus_file)]}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def config_file(without_sizes):
    path = without_sizes.with_name("sizes.yaml")
    path.write_text(without_sizes.read_text(encoding="utf-8") + yaml.safe_dump(SIZES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def train(config_file):
    """``train(folder, key=value ...)`` -> what the run has left."""
    return partial(runs.train, config_file)


@pytest.fixture(scope="module")
def whole(train, tmp_path_factory):
    """A run that was not interrupted. Do not change its files."""
    return train(tmp_path_factory.mktemp("whole") / "run")


def test_scores_of_each_stage_are_recorded(whole):
    rows = whole.metrics["stages"]
    assert [(row["max_tokens"], row["batch_size"], row["steps"]) for row in rows] == parse_stages(STAGES)
    for row in rows:
        assert 0 < row["dev_loss"] < 2 * math.log(1000) and 0 <= row["dev_accuracy"] <= 1
        assert row["million_tokens"] == row["max_tokens"] * row["batch_size"] * row["steps"] / 1e6
    assert rows[-1]["dev_loss"] < rows[0]["dev_loss"]
    assert whole.metrics["dev"] == {"loss": rows[-1]["dev_loss"], "accuracy": rows[-1]["dev_accuracy"]}
    with open(whole.folder / "stages.csv", encoding="utf-8", newline="") as file:
        assert [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)] == rows


def test_recorded_scores_are_those_of_the_weights_at_the_length_of_the_stage(whole, corpus_file):
    train, dev = hold_out(read_documents([corpus_file]), whole.config["dev_fraction"])
    tokenizer = load_tokenizer(whole.model)
    assert tokenizer.vocab == CharTokenizer.from_corpus(train, min_count=2).vocab
    stream = tokenize(dev, tokenizer, "", show_progress=False)
    batches = DevBatches(stream, parse_stages(STAGES)[-1], tokenizer, WholeWordMasking(tokenizer))
    scores = evaluate_model(RoFormerForMaskedLM.from_pretrained(whole.model), batches)
    assert scores == {name: pytest.approx(value, rel=1e-5) for name, value in whole.metrics["dev"].items()}


def test_visualdl_shows_training_and_the_end_of_each_stage(whole):
    logged = sorted({*range(2, ENDS[-1] + 1, 2), *ENDS})
    assert [step for step, _ in runs.curve(whole.folder, "1_train/loss")] == logged
    for name in ("loss", "accuracy"):
        expected = [(end, pytest.approx(row[f"dev_{name}"])) for end, row in zip(ENDS, whole.metrics["stages"])]
        assert runs.curve(whole.folder, f"dev/{name}") == expected
    # one schedule over all stages: up at the beginning, then down to 0
    rates = dict(runs.curve(whole.folder, "1_train/learning_rate"))
    assert rates[2] > rates[4] > rates[ENDS[0]] > rates[ENDS[1]] > rates[ENDS[2]] == 0


# ---- interruption


@pytest.mark.slow
@pytest.mark.parametrize(
    "options, cuts",
    [
        ({}, [(9, "on_step_end"), (ENDS[-1], "on_train_end")]),  # checkpoints are every 5 steps and at 7, 13, 18
        ({"gradient_accumulation_steps": 2, "save_steps": 2, "first_hidden_share": 0.4}, [(5, "on_step_end")]),
    ],
)
def test_interrupted_run_ends_as_if_it_had_not_been(train, whole, tmp_path, options, cuts):
    whole = train(tmp_path / "whole", **options) if options else whole
    folder = tmp_path / "cut"
    for number, (step, event) in enumerate(cuts):
        with power_cut(event, step):
            main(["train", "--resume", str(folder)]) if number else train(folder, **options)
    assert not (folder / "metrics.json").exists()
    assert main(["train", "--resume", str(folder)]) == 0
    left = runs.left_by(folder)
    for name in ("model/model.safetensors", "model/config.json", "model/vocab.txt"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes(), name
    for first, second in zip(left.metrics["stages"], whole.metrics["stages"]):
        assert {**first, "seconds_per_step": 0} == {**second, "seconds_per_step": 0}
    checkpoints = [last_checkpoint(run.folder / "checkpoints") / "optimizer.safetensors" for run in (left, whole)]
    first, second = map(load_file, checkpoints)
    assert first.keys() == second.keys() and all(np.array_equal(first[key], second[key]) for key in first)


# ---- where it starts, and what starts from it


@pytest.mark.slow
def test_softmax_weights_start_a_linear_model(whole, tmp_path, caplog, without_sizes):
    keys = {"pretrained": whole.model, "attention": "linear", "learning_rate": 1e-9, "weight_decay": 0}
    with caplog.at_level(logging.INFO, logger="paddle_rope"):
        run = runs.train(without_sizes, tmp_path / "run", **keys)
    assert "new, as initialized" not in caplog.text and "not used" not in caplog.text
    assert (run.model_config["attention"], whole.model_config["attention"]) == ("linear", "softmax")
    assert (run.model / "vocab.txt").read_bytes() == (whole.model / "vocab.txt").read_bytes()
    first, second = (RoFormerForMaskedLM.from_pretrained(one.model).roformer.state_dict() for one in (whole, run))
    assert first.keys() == second.keys()
    for name, weight in first.items():
        np.testing.assert_allclose(second[name].numpy(), weight.numpy(), atol=1e-6, err_msg=name)


def test_words_are_tokens_with_a_word_vocabulary(train, tmp_path, word_vocab_file):
    options = {"tokenizer": "word", "vocab_file": word_vocab_file, "stages": "32x4x1", "num_hidden_layers": 2}
    left = train(tmp_path / "run", **options, attention="linear,softmax")
    tokenizer = load_tokenizer(left.model)
    assert isinstance(tokenizer, WordTokenizer)
    assert tokenizer.vocab == word_vocab_file.read_text(encoding="utf-8").split("\n")[:-1]
    assert left.model_config["attention"] == ["linear", "softmax"]


def test_held_out_files_are_evaluated_on_and_not_trained_on(train, corpus_file, tmp_path, capsys):
    documents = read_documents([corpus_file])
    (tmp_path / "dev.txt").write_text("\n".join(["新的一句。", *documents[:3]]), encoding="utf-8")
    files = {"dev_files": f"{tmp_path / 'dev.txt'},{tmp_path / 'more.txt'}", "stages": "32x4x1"}
    (tmp_path / "more.txt").write_text("再来一句。", encoding="utf-8")
    left = train(tmp_path / "run", **files)
    shown = capsys.readouterr().out
    assert f"train: {len(documents) - 3} documents" in shown and "dev: 5 documents" in shown
    assert load_tokenizer(left.model).vocab == CharTokenizer.from_corpus(documents[3:], min_count=2).vocab


@pytest.mark.parametrize("words, said", [
    ("--stages 512x8", "stage 1 of stages"), ("--max_steps 3", "'max_steps' cannot be set"),
    ("--tokenizer bpe", "tokenizer must be one of"), ("--tokenizer word", "without vocab_file"),
    ("--vocab_file missing.txt", "missing.txt: no such file"),
    ("--vocab_file missing.txt --vocab_min_count 2", "'vocab_min_count'"),
    ("--vocab_file special.txt", "special.txt: holds special tokens only"),
    ("--vocab_file unmasked.txt", "unmasked.txt: lacks [MASK]"), ("--pretrained missing", "'hidden_size'"),
    ("--dev_fraction 0", "dev_fraction must be greater than 0"),
    ("--first_hidden_share 1", "first_hidden_share must be greater than 0 and less than 1"),
    ("--dev_files missing.txt", "missing.txt: no such file"),
    ("--text_files unmasked.txt --dev_files unmasked.txt", "all documents are in dev_files too"),
])  # fmt: skip
def test_mistake_is_one_line(refused, config_file, tmp_path, words, said):
    (tmp_path / "special.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", encoding="utf-8")
    (tmp_path / "unmasked.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n一\n", encoding="utf-8")
    assert said in refused("train", config_file, "--output_dir", "run", *words.split())
