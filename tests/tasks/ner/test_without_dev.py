"""Training on all labeled data: nothing is held out, and the last weights are kept."""

import json

import numpy as np
import pytest
import train_ner
from safetensors.numpy import load, load_file
from visualdl import LogReader

from tasks.common.training.monitor import VisualDLMonitor
from tasks.ner.reports.monitoring import NerMonitor

EPOCHS, STEPS = 3, 6  # 45 texts in batches of 8


@pytest.fixture(scope="module")
def options(few_texts):
    return {
        "train_file": few_texts.train, "dev_file": "", "dev_fraction": 0, "test_file": few_texts.dev,
        "num_train_epochs": EPOCHS, "ema_decay": 0.8,
    }  # fmt: skip


@pytest.fixture(scope="module")
def whole(train, options, tmp_path_factory):
    return train(tmp_path_factory.mktemp("whole") / "run", **options)


def test_run_learns_from_all_texts_and_scores_the_test_file_alone(train, options, tmp_path, capsys):
    run = train(tmp_path / "run", early_stopping_patience=1, **options)
    printed = capsys.readouterr().out
    assert "train: 45 texts" in printed and "test: 10 texts" in printed and "dev:" not in printed
    assert "no dev data: the last epoch is kept" in printed
    assert "dev" not in run.metrics and 0 <= run.metrics["test"]["f1"] <= 1
    assert not (run.folder / "predictions_dev.jsonl").exists()
    (log,) = (run.folder / "vdl").iterdir()
    tags = LogReader(file_path=str(log)).get_tags()
    assert "1_train/loss" in tags["scalar"] and not [tag for tag in tags["scalar"] if tag.startswith("dev")]


def test_last_averaged_weights_are_kept(whole):
    last = whole.folder / f"checkpoints/checkpoint-{EPOCHS * STEPS}"
    average = load_file(last / "average.safetensors")
    kept = load(whole.weights)
    assert average.keys() == kept.keys()
    assert all(np.array_equal(average[name], kept[name]) for name in kept)


@pytest.mark.parametrize("step", [STEPS + 2, EPOCHS * STEPS], ids=["in an epoch", "after the last"])
def test_run_that_was_cut_ends_as_if_it_had_not_been(train, options, whole, tmp_path, monkeypatch, step):
    class PowerCut(Exception):
        pass

    def on_log(self, args, state, control, **kwargs):
        if state.global_step >= step and (step < EPOCHS * STEPS or "train_loss" in kwargs["logs"]):
            raise PowerCut
        VisualDLMonitor.on_log(self, args, state, control, **kwargs)

    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(NerMonitor, "on_log", on_log, raising=False)
        train(tmp_path / "cut", **options)
    assert train_ner.main(["--resume", str(tmp_path / "cut")]) == 0
    assert (tmp_path / "cut/model/model.safetensors").read_bytes() == whole.weights
    metrics = json.loads((tmp_path / "cut/metrics.json").read_text("utf-8"))
    assert metrics["test"] == whole.metrics["test"]
