"""Which epoch of a run is kept and where it stops; batches, gradients and two processes."""

import json

import numpy as np
import pytest
from safetensors.numpy import load, load_file

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.training.checkpoints import last_checkpoint
from paddle_rope.tasks.common.training.monitor import VisualDLMonitor
from paddle_rope.tasks.common.training.trainer import LengthGroupedBatchSampler
from paddle_rope.tasks.ner.recipe import NerRecipe
from tests.conftest import REPOSITORY
from tests.helpers.runs import launch, log_of, power_cut, run_words
from tests.tasks.ner.conftest import TINY

TWO_STEPS = {"per_device_train_batch_size": 23}  # an epoch


def pretend(monkeypatch, values):
    """The dev F1 of each epoch."""
    original = NerRecipe.dev_scores

    def scores(recipe, run):
        return {**original(recipe, run), "f1": values[round(run.trainer.state.epoch) - 1]}

    monkeypatch.setattr(NerRecipe, "dev_scores", scores)


def checkpoint_steps(folder):
    return sorted(int(path.name.split("-")[1]) for path in (folder / "checkpoints").glob("checkpoint-*"))


def newest_state(folder):
    states = [json.loads(path.read_text("utf-8")) for path in folder.glob("checkpoints/*/trainer_state.json")]
    return max(states, key=lambda state: state["global_step"])


def assert_saved(run, step):
    kept = load_file(run.folder / f"checkpoints/checkpoint-{step}/average.safetensors")
    saved = load(run.weights)
    assert saved.keys() == kept.keys() and all((saved[key] == value).all() for key, value in kept.items())


@pytest.mark.slow
def test_training_stops_and_keeps_the_best_also_where_it_was_cut(train_few, tmp_path, monkeypatch, capsys):
    """Nothing counts before anything is found, as good is not better, and a better epoch begins the patience anew."""
    pretend(monkeypatch, [0, 0, 0, 0.2, 0.1, 0.3, 0.3, 0.2, 0.9])
    options = {"num_train_epochs": 9, "early_stopping_patience": 2, "ema_decay": 0.5, **TWO_STEPS}
    whole = train_few(tmp_path / "whole", **options)
    assert "training stops: " in capsys.readouterr().out and checkpoint_steps(whole.folder) == [12, 16]
    assert_saved(whole, 12)
    # after a new best epoch, whose checkpoint is damaged; before an evaluation; when the run has just been stopped
    for cut in (("on_epoch_begin", 12), ("on_epoch_end", 16), ("on_train_end",)):
        folder = tmp_path / cut[0]
        with power_cut(*cut):
            train_few(folder, **options)
        if cut[0] == "on_epoch_begin":
            (folder / "checkpoints/checkpoint-12/model.safetensors").write_bytes(b"")
            assert last_checkpoint(folder / "checkpoints").name == "checkpoint-10"
        assert main(["train", "--resume", str(folder)]) == 0
        assert (folder / "model/model.safetensors").read_bytes() == whole.weights
        assert checkpoint_steps(folder) == [12, 16]


def test_the_saved_model_is_the_average_at_the_best_epoch(trained, corpus, evaluate):
    state = newest_state(trained.folder)
    best = int(state["best_model_checkpoint"].rpartition("-")[2])
    assert_saved(trained, best)
    plain = load_file(trained.folder / f"checkpoints/checkpoint-{best}/model.safetensors")
    assert any((load(trained.weights)[name] != value).any() for name, value in plain.items())
    assert trained.metrics["dev"]["f1"] == state["best_metric"] == evaluate(corpus.dev)["f1"] > 0


@pytest.mark.parametrize("options", [
    {"keep_best": False}, {"dev_file": "", "dev_fraction": 0, "early_stopping_patience": 1},
], ids=["keep_best false", "no dev"])  # fmt: skip
def test_the_last_epoch_is_kept_without_dev_or_if_so_told(train_few, few_texts, tmp_path, monkeypatch, capsys, options):
    pretend(monkeypatch, [0.1, 0.3, 0.2])
    options = {"num_train_epochs": 3, "ema_decay": 0.5, "test_file": few_texts.dev, **TWO_STEPS, **options}
    run = train_few(tmp_path / "run", **options)
    assert_saved(run, 6)
    assert "training stops: " not in capsys.readouterr().out
    has_dev = "keep_best" in options
    assert has_dev or run.model_config["temperatures"] == 1.0
    assert ("dev" in run.metrics) == (run.predictions is not None) == has_dev and 0 <= run.metrics["test"]["f1"] <= 1
    tags = log_of(run.folder / "vdl").get_tags()["scalar"]
    assert any(tag.startswith("dev") for tag in tags) == has_dev


def test_each_epoch_shuffles_anew_without_gradients_left_over(train_few, few_texts, write, tmp_path, monkeypatch):
    at_start, epochs = [], []

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        at_start.append(sum(float(p.grad.abs().sum()) for p in model.parameters() if p.grad is not None))

    monkeypatch.setattr(VisualDLMonitor, "on_step_begin", on_step_begin, raising=False)
    monkeypatch.setattr(LengthGroupedBatchSampler, "set_epoch", lambda self, epoch: epochs.append(epoch))
    options = {"num_train_epochs": 3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    ten = write(b"".join(few_texts.train.read_bytes().splitlines(keepends=True)[:10]))
    run = train_few(tmp_path / "run", train_file=ten, **options)  # five batches: two steps and one left over
    assert checkpoint_steps(run.folder)[-1] == 6 and epochs == [0, 1, 2]
    assert at_start == [0] * 8  # two steps of each epoch, and its batch left over but for the last epoch's


@pytest.mark.slow
def test_two_processes_train_as_one_with_larger_batches(train, few_texts, write, tmp_path):
    """Without random numbers in the model, with all texts in batches that both ways of training have."""
    texts = write(b"".join(few_texts.train.read_bytes().splitlines(keepends=True)[:40]))
    options = {
        "train_file": texts, "dev_file": few_texts.dev, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0,
        "logging_steps": 1, "num_train_epochs": 2, "learning_rate": 1e-3, "ema_decay": 0.5,
    }  # fmt: skip
    of_two = {**TINY, **options, "output_dir": tmp_path / "two", "per_device_train_batch_size": 4}
    launch(tmp_path, REPOSITORY / "tools/train_ner.py", *run_words(of_two))
    one = train(tmp_path / "one", **options, per_device_train_batch_size=8)
    logs = [newest_state(folder)["log_history"] for folder in (tmp_path / "two", one.folder)]
    of_two, of_one = ([entry["loss"] for entry in log if "loss" in entry] for log in logs)
    assert len(of_one) == 10
    np.testing.assert_allclose(of_two, of_one, rtol=1e-5)
    # the first process alone writes
    assert {path.name for path in (tmp_path / "two").iterdir()} == {path.name for path in one.folder.iterdir()}
    assert len(list((tmp_path / "two/vdl").iterdir())) == 1
    assert load_file(tmp_path / "two/model/model.safetensors").keys() == load(one.weights).keys()
