"""An interrupted run goes on to the result that it would have had."""

import json
import os
import pickle
import signal

import numpy as np
import pytest
from safetensors.numpy import load_file

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.training.checkpoints import COMPLETE_FILE, last_checkpoint
from paddle_rope.tasks.ner import NerPredictor
from tests.helpers.runs import Bomb, at_event, curves, log_of, power_cut, run_words
from tests.tasks.ner.conftest import TINY

EPOCHS, STEPS = 4, 5  # 32 texts, 11 batches an epoch: 5 steps of two, and one batch that is left over
# All that keeps a state between steps, or draws random numbers.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "character_dropout", "feature_dropout")
OPTIONS = {
    **{"train_texts": 32, "per_device_train_batch_size": 3, "gradient_accumulation_steps": 2, "learning_rate": 2e-2},
    **{"num_train_epochs": EPOCHS, "masked_lm_epochs": 2, "ema_decay": 0.8},
    "logging_steps": 3,  # so that a part of the loss is not logged yet at most checkpoints
    **dict.fromkeys(DROPOUTS, 0.1),
    "features": "segmentation,bigrams,dictionary",
}
EACH_STEP = {"checkpoint_minutes": 1e-9}


@pytest.fixture(scope="module")
def start(train_few, each_epoch_is_better):
    """``start(folder, key=value ...)``: begin a run with all that keeps a state."""
    return lambda folder, **more: train_few(folder, **{**OPTIONS, **more})


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory):
    """A run that was not interrupted."""
    return start(tmp_path_factory.mktemp("whole") / "run")


def resume(folder):
    assert main(["train", "--resume", str(folder)]) == 0


def assert_equal_results(folder, whole):
    names = ("model/model.safetensors", "model/config.json", "model/vocab.txt", "predictions_dev.jsonl", "epochs.csv")
    for name in names:
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes(), name
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert {**metrics, "train_seconds": 0} == {**whole.metrics, "train_seconds": 0}
    assert logged(folder) == logged(whole.folder)
    for name in ("model.safetensors", "average.safetensors"):  # also what follows the best epoch
        file = f"checkpoints/checkpoint-{EPOCHS * STEPS}/{name}"
        first, second = (load_file(run / file) for run in (folder, whole.folder))
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[key], second[key]) for key in first), name


def logged(folder):
    """The VisualDL log's (step, value) by name."""
    reader = log_of(folder / "vdl")
    same = {name: values for name, values in curves(folder / "vdl").items() if "second" not in name}
    return {**same, "configuration": len(reader.get_data("text", "configuration"))}


PICKLES = (  # all names that PaddleNLP's trainer and earlier versions read
    "average.pdparams", "rng_state.pth", "optimizer.pdopt", "scheduler.pdparams", "scaler.pdparams",
    "model_state.pdparams", "training_args.bin",
)  # fmt: skip
STEP, PRETRAINING = "on_step_end", "pretraining"


@pytest.mark.slow
@pytest.mark.parametrize("cuts, keys, resumed_from", [
    ([(STEP, STEPS + 3)], {}, f"checkpoint-{STEPS}"),
    ([("on_epoch_end", STEPS)], EACH_STEP, f"checkpoint-{STEPS - 1}"),  # of the last step: once the epoch has ended
    ([(STEP, 2 * STEPS + 1), ("on_epoch_end",)], {}, f"checkpoint-{2 * STEPS}"),
    ([(STEP, STEPS + 2, PRETRAINING), (STEP, 1)], EACH_STEP, f"before/checkpoint-{2 * STEPS}"),
    ([("on_train_end",)], {}, f"checkpoint-{EPOCHS * STEPS}"),
    ([(STEP, STEPS - 1, PRETRAINING)], {}, None),
])  # fmt: skip
def test_a_run_that_was_cut_ends_as_if_it_was_not(whole, start, tmp_path, capsys, cuts, keys, resumed_from):
    folder = tmp_path / "run"
    for number, cut in enumerate(cuts):
        with power_cut(*cut):
            resume(folder) if number else start(folder, **keys)
        folder = folder.rename(tmp_path / f"moved {number}")
    for path in (folder / "checkpoints").rglob(COMPLETE_FILE):
        for name in PICKLES:
            (path.parent / name).write_bytes(pickle.dumps(Bomb(tmp_path / "made")))
    capsys.readouterr()
    resume(folder)
    place = f"resuming from {folder / 'checkpoints' / resumed_from}" if resumed_from else "begins anew"
    assert place in capsys.readouterr().out
    assert_equal_results(folder, whole)
    assert not (tmp_path / "made").exists() and not (folder / "checkpoints" / "before").exists()


@pytest.mark.slow
def test_a_run_without_dev_that_was_cut_at_its_end_only_writes_its_results(train_few, few_texts, tmp_path):
    options = {"num_train_epochs": 2, "dev_file": "", "dev_fraction": 0, "test_file": few_texts.dev, "ema_decay": 0.8}
    whole = train_few(tmp_path / "whole", **options)
    with power_cut("on_train_end"):
        train_few(tmp_path / "cut", **options)
    resume(tmp_path / "cut")
    assert (tmp_path / "cut/model/model.safetensors").read_bytes() == whole.weights
    assert json.loads((tmp_path / "cut/metrics.json").read_bytes())["test"] == whole.metrics["test"]


@pytest.mark.slow
def test_a_run_that_a_signal_ends_names_what_resumes_it(whole, few_texts, each_epoch_is_better, tmp_path, capsys):
    folder, files = tmp_path / "run", {"train_file": few_texts.train, "dev_file": few_texts.dev}
    with at_event("on_step_end", lambda: os.kill(os.getpid(), signal.SIGTERM), STEPS + 2):
        words = run_words({**TINY, **OPTIONS, **files, "output_dir": folder})
        assert main(["train", *words]) == 128 + signal.SIGTERM
    error = capsys.readouterr().err
    assert "Traceback" not in error and error.splitlines()[-1].endswith(f"train --resume {folder}")
    assert "best weights so far" in error and len(NerPredictor(folder / "model", "cpu")(["甲乙"])) == 1
    # a signal writes a checkpoint after the current step
    assert last_checkpoint(folder / "checkpoints").name == f"checkpoint-{STEPS + 3}"
    resume(folder)
    assert_equal_results(folder, whole)
