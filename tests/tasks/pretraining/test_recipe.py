import csv
import json
import logging
import math
from types import SimpleNamespace

import numpy as np
import pretrain
import pytest
import train_ner
import yaml
from PIL import Image
from safetensors.numpy import load_file
from visualdl import LogReader

from paddle_rope.roformer import CharTokenizer, RoFormerForMaskedLM, load_tokenizer
from tasks.common.texts.documents import hold_out, read_documents
from tasks.common.training.complete import last_checkpoint
from tasks.pretraining.batches import DevBatches
from tasks.pretraining.masking import WholeWordMasking
from tasks.pretraining.stages import parse_stages
from tasks.pretraining.tokens import tokenize
from tasks.pretraining.trainer import PretrainingMonitor, evaluate_model

STAGES = "48x4x7,16x8x6,64x2x5"
ENDS = (7, 13, 18)
TINY = {
    "stages": STAGES,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "dev_fraction": 0.1,
    "learning_rate": 1e-2,
    "logging_steps": 2,
    "save_steps": 5,
    "device": "cpu",
}


@pytest.fixture(scope="session")
def config_file(corpus_file, tmp_path_factory):
    """A configuration of a tiny model: all but the output folder."""
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(yaml.safe_dump({"text_files": [str(corpus_file)], **TINY}), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def run(config_file):
    """Pretrain a tiny model: ``run(folder, key=value ...)`` -> what the run has left."""

    def run(folder, **overrides):
        words = [word for key, value in overrides.items() for word in (f"--{key}", str(value))]
        assert pretrain.main([str(config_file), "--output_dir", str(folder), *words]) == 0
        return left_by(folder)

    return run


@pytest.fixture(scope="session")
def whole(run, tmp_path_factory):
    """A run that was not interrupted. Do not change its files."""
    return run(tmp_path_factory.mktemp("whole") / "run")


def left_by(folder):
    """What a run has left."""
    return SimpleNamespace(
        folder=folder,
        model=folder / "model",
        weights=(folder / "model" / "model.safetensors").read_bytes(),
        config=yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8")),
        metrics=json.loads((folder / "metrics.json").read_text(encoding="utf-8")),
    )


@pytest.fixture
def fails(tmp_path, monkeypatch, capsys, config_file):
    """Run the tool in ``tmp_path`` with more words; it must end with status 2 and one line, and leave no file."""
    monkeypatch.chdir(tmp_path)

    def fails(*words, config=config_file):
        before = set(tmp_path.rglob("*"))
        capsys.readouterr()
        assert pretrain.main([str(config), "--output_dir", "run", *map(str, words)]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("error: ") and captured.err.count("\n") == 1, captured.err
        assert set(tmp_path.rglob("*")) == before
        return captured.err.removeprefix("error: ").rstrip("\n")

    return fails


# ---- what a run leaves


def test_scores_of_each_stage_are_recorded(whole):
    rows = whole.metrics["stages"]
    assert [(row["max_tokens"], row["batch_size"], row["steps"]) for row in rows] == parse_stages(STAGES)
    for row in rows:
        assert 0 < row["dev_loss"] < 2 * math.log(1000) and 0 <= row["dev_accuracy"] <= 1
        assert row["million_tokens"] == row["max_tokens"] * row["batch_size"] * row["steps"] / 1e6
    assert rows[-1]["dev_loss"] < rows[0]["dev_loss"]
    assert whole.metrics["dev"] == {"loss": rows[-1]["dev_loss"], "accuracy": rows[-1]["dev_accuracy"]}
    with open(whole.folder / "stages.csv", encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [{key: float(value) for key, value in row.items()} for row in table] == rows
    lines = (whole.folder / "stages.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 + len(rows)
    assert lines[-1].endswith(f"| {round(rows[-1]['dev_loss'], 4)} | {round(rows[-1]['dev_accuracy'], 4)} |")
    with Image.open(whole.folder / "stages.png") as image:
        assert image.format == "PNG" and min(image.size) > 300


def test_recorded_scores_are_those_of_the_weights_at_the_length_of_the_stage(whole, corpus_file):
    tokenizer = load_tokenizer(whole.model)
    model = RoFormerForMaskedLM.from_pretrained(whole.model)
    _, dev = hold_out(read_documents([corpus_file]), whole.config["dev_fraction"])
    stream = tokenize(dev, tokenizer, "", show_progress=False)
    batches = DevBatches(stream, parse_stages(STAGES)[-1], tokenizer, WholeWordMasking(tokenizer))
    scores = evaluate_model(model, batches)
    assert scores == {name: pytest.approx(value, rel=1e-5) for name, value in whole.metrics["dev"].items()}


def test_curves_are_in_the_visualdl_log(whole):
    (path,) = (whole.folder / "vdl").iterdir()
    reader = LogReader(file_path=str(path))
    curves = {
        name: [(record.id, record.value) for record in reader.get_data("scalar", name)]
        for name in ("1_train/loss", "1_train/accuracy", "1_train/learning_rate", "dev/loss", "dev/accuracy")
    }
    logged = sorted({*range(2, ENDS[-1] + 1, 2), *ENDS})
    assert [step for step, _ in curves["1_train/loss"]] == [step for step, _ in curves["1_train/accuracy"]] == logged
    assert [step for step, _ in curves["dev/loss"]] == list(ENDS)
    expected = [row["dev_accuracy"] for row in whole.metrics["stages"]]
    assert [value for _, value in curves["dev/accuracy"]] == pytest.approx(expected, rel=1e-5)
    # one schedule over all stages: up at the beginning, then down to 0
    rates = dict(curves["1_train/learning_rate"])
    assert rates[2] > rates[4] > rates[ENDS[0]] > rates[ENDS[1]] > rates[ENDS[2]] == 0


def test_fixed_random_tokens_are_learned_by_heart(run, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("甲乙丙丁\n戊己庚辛\n", encoding="utf-8")
    left = run(
        tmp_path / "run", text_files=text, stages="8x16x150", vocab_min_count=1, dev_fraction=0.5,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0, save_steps=1000, logging_steps=30,
    )  # fmt: skip
    (path,) = (left.folder / "vdl").iterdir()
    losses = [record.value for record in LogReader(file_path=str(path)).get_data("scalar", "1_train/loss")]
    assert losses[-1] < 0.8 < 1.5 < losses[0]


# ---- interruption


class PowerCut(Exception):
    pass


@pytest.fixture
def cut_run(run, tmp_path, monkeypatch):
    """Start a run that breaks off at the end of a step."""

    def cut_run(step, event="on_step_end", **overrides):
        def power_cut(self, args, state, control, **kwargs):
            if state.global_step >= step:
                raise PowerCut

        with monkeypatch.context() as patch, pytest.raises(PowerCut):
            patch.setattr(PretrainingMonitor, event, power_cut)
            run(tmp_path / "cut", **overrides)
        return tmp_path / "cut"

    return cut_run


def assert_equal_results(folder, whole):
    left = left_by(folder)
    assert left.weights == whole.weights
    for name in ("model/config.json", "model/vocab.txt"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes()
    for first, second in zip(left.metrics["stages"], whole.metrics["stages"]):
        assert {**first, "seconds_per_step": 0} == {**second, "seconds_per_step": 0}
    assert left.metrics["dev"] == whole.metrics["dev"]
    checkpoints = [last_checkpoint(run / "checkpoints") for run in (folder, whole.folder)]
    assert checkpoints[0].name == checkpoints[1].name == f"checkpoint-{ENDS[-1]}"
    first, second = (load_file(path / "optimizer.safetensors") for path in checkpoints)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("step, reached", [(9, 7), (12, 10), (14, 13)])  # saved every 5 steps and at 7, 13, 18
def test_interrupted_run_ends_as_if_it_had_not_been(whole, cut_run, capsys, step, reached):
    folder = cut_run(step)
    capsys.readouterr()
    assert pretrain.main(["--resume", str(folder)]) == 0
    assert f"checkpoint-{reached}\n" in capsys.readouterr().out
    assert_equal_results(folder, whole)


def test_interrupted_run_keeps_its_word_vocabulary(run, cut_run, tmp_path, word_vocab_file):
    options = {"tokenizer": "word", "vocab_file": word_vocab_file}
    whole = run(tmp_path / "whole", **options)
    folder = cut_run(9, **options)
    assert pretrain.main(["--resume", str(folder)]) == 0
    assert_equal_results(folder, whole)


def test_run_cut_behind_its_last_step_only_writes_its_results(whole, cut_run):
    folder = cut_run(ENDS[-1], event="on_train_end")
    assert not (folder / "metrics.json").exists()
    assert pretrain.main(["--resume", str(folder)]) == 0
    assert_equal_results(folder, whole)


def test_resumed_run_may_be_cut_again(run, cut_run, tmp_path, monkeypatch):
    options = {"gradient_accumulation_steps": 2, "attention": "linear", "save_steps": 2}
    whole = run(tmp_path / "whole", **options)
    folder = cut_run(5, **options)

    def power_cut(self, args, state, control, **kwargs):
        if state.global_step >= 11:
            raise PowerCut

    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(PretrainingMonitor, "on_step_end", power_cut)
        pretrain.main(["--resume", str(folder)])
    assert pretrain.main(["--resume", str(folder)]) == 0
    assert_equal_results(folder, whole)


def test_seed_alone_decides(run, whole, tmp_path):
    assert run(tmp_path / "again").weights == whole.weights
    assert run(tmp_path / "other", seed=43).weights != whole.weights


# ---- where it starts


def test_softmax_weights_start_a_linear_model(run, whole, tmp_path, caplog, config_file):
    config = yaml.safe_load(config_file.read_text(encoding="utf-8"))
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    path = tmp_path / "warm.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in config.items() if key not in sizes}), encoding="utf-8")
    words = ["--pretrained", str(whole.model), "--attention=linear", "--learning_rate=1e-9", "--weight_decay=0"]
    with caplog.at_level(logging.WARNING, logger="paddle_rope"):
        assert pretrain.main([str(path), "--output_dir", str(tmp_path / "run"), *words]) == 0
    assert "new, as initialized" not in caplog.text and "not used" not in caplog.text
    first, second = (RoFormerForMaskedLM.from_pretrained(folder) for folder in (whole.model, tmp_path / "run/model"))
    assert second.config.attention == "linear" and first.config.attention == "softmax"
    assert (tmp_path / "run/model/vocab.txt").read_bytes() == (whole.model / "vocab.txt").read_bytes()
    for name, weight in first.state_dict().items():
        assert np.allclose(weight.numpy(), second.state_dict()[name].numpy(), atol=1e-6), name


def test_ner_starts_from_the_result(whole, corpus_file, tmp_path):
    config = tmp_path / "ner.yaml"
    options = {
        "train_file": str(corpus_file), "num_train_epochs": 1, "max_characters": 64, "device": "cpu",
        "pretrained": str(whole.model), "learning_rate": 1e-9, "weight_decay": 0, "warmup_ratio": 0,
    }  # fmt: skip
    config.write_text(yaml.safe_dump(options), encoding="utf-8")
    assert train_ner.main([str(config), "--output_dir", str(tmp_path / "ner")]) == 0
    encoder = RoFormerForMaskedLM.from_pretrained(whole.model).roformer
    ner = RoFormerForMaskedLM.from_pretrained(tmp_path / "ner/model").roformer  # the encoder of any folder
    for name, weight in encoder.state_dict().items():
        assert np.allclose(weight.numpy(), ner.state_dict()[name].numpy(), atol=1e-6), name


def test_words_are_tokens_with_a_word_vocabulary(run, tmp_path, word_vocab_file):
    left = run(
        tmp_path / "run", tokenizer="word", vocab_file=word_vocab_file, stages="32x4x1", attention="linear,softmax",
        num_hidden_layers=2,
    )  # fmt: skip
    tokenizer = load_tokenizer(left.model)
    assert type(tokenizer).__name__ == "WordTokenizer"
    assert tokenizer.vocab == word_vocab_file.read_text(encoding="utf-8").split("\n")[:-1]
    assert json.loads((left.model / "config.json").read_text(encoding="utf-8"))["attention"] == ["linear", "softmax"]


def test_characters_are_those_of_the_training_documents(whole, corpus_file):
    train, _ = hold_out(read_documents([corpus_file]), whole.config["dev_fraction"])
    expected = CharTokenizer.from_corpus(train, min_count=2)
    assert load_tokenizer(whole.model).vocab == expected.vocab


# ---- what the user can mend


@pytest.mark.parametrize(
    "words, message",
    [
        (["--stages", "512x8"], "stage 1 of stages is '512x8'"),
        (["--max_steps", "3"], "key 'max_steps' cannot be set: the stages give lengths, batch sizes and steps"),
        (["--num_train_epochs", "3"], "key 'num_train_epochs' cannot be set"),
        (["--text_files", "missing.txt"], "missing.txt: no such file"),
        (["--tokenizer", "bpe"], "tokenizer must be one of char, word, got bpe"),
        (["--tokenizer", "word"], "tokenizer word without vocab_file"),
        (["--vocab_file", "missing.txt"], "missing.txt: no such file"),
        (["--vocab_file", "missing.txt", "--vocab_min_count", "2"], "key 'vocab_min_count'"),
        (["--pretrained", "missing"], "key 'hidden_size': sizes and tokenizer come from the folder missing"),
        (["--dev_fraction", "0"], "dev_fraction must be greater than 0"),
        (["--attention", "quadratic"], "quadratic"),
        (["--train_file", "x"], "key 'train_file' is a key of ner, matching, "),
        (["--hidden_size", "33"], "33"),
    ],
)
def test_mistake_is_one_line(fails, words, message):
    assert message in fails(*words)


def test_vocabulary_without_characters_is_refused(fails, tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", encoding="utf-8")
    assert "vocab.txt: holds special tokens only" in fails("--vocab_file", "vocab.txt")


def test_vocabulary_without_mask_is_refused(fails, tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n一\n", encoding="utf-8")
    assert "vocab.txt: lacks [MASK]" in fails("--vocab_file", "vocab.txt")


def test_run_is_not_written_into_a_folder_that_is_taken(whole, config_file, capsys):
    assert pretrain.main([str(config_file), "--output_dir", str(whole.folder)]) == 2
    assert "already holds another run" in capsys.readouterr().err
