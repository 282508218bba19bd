"""Which epoch of a run is kept and where it stops; batches, gradients, several seeds and two processes."""

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


@pytest.fixture
def pretend(monkeypatch):
    """``pretend(values)``: the dev F1 of each epoch."""
    original = NerRecipe.dev_scores

    def pretend(values):
        def scores(recipe, run):
            return {**original(recipe, run), "f1": values[round(run.trainer.state.epoch) - 1]}

        monkeypatch.setattr(NerRecipe, "dev_scores", scores)

    return pretend


def checkpoint_steps(folder):
    return sorted(int(path.name.split("-")[1]) for path in (folder / "checkpoints").glob("checkpoint-*"))


def newest_state(folder):
    states = [json.loads(path.read_text("utf-8")) for path in folder.glob("checkpoints/*/trainer_state.json")]
    return max(states, key=lambda state: state["global_step"])


def assert_saved(run, step, name="average.safetensors"):
    kept, saved = load_file(run.folder / f"checkpoints/checkpoint-{step}" / name), load(run.weights)
    assert saved.keys() == kept.keys() and all((saved[key] == value).all() for key, value in kept.items())


@pytest.mark.slow
@pytest.mark.parametrize("patience, values, stopped, best", [
    (2, [0.3, 0.2, 0.4, 0.3, 0.3, 0.9], 5, 3),
    (1, [0.2, 0.2, 0.9], 2, 1),  # as good is not better
    (3, [0.1, 0.2, 0.1, 0.1], 4, 2),  # the epochs end first
    (1, [0.0, 0.0, 0.2, 0.1, 0.9], 4, 3),  # nothing counts before anything is found
])  # fmt: skip
def test_training_stops_and_keeps_the_best(train_few, tmp_path, pretend, capsys, patience, values, stopped, best):
    pretend(values)
    run = train_few(tmp_path / "run", num_train_epochs=len(values), early_stopping_patience=patience, **TWO_STEPS)
    assert checkpoint_steps(run.folder) == sorted({2 * stopped, 2 * best})
    assert_saved(run, 2 * best, "model.safetensors")
    assert ("training stops: " in capsys.readouterr().out) == (stopped < len(values))


@pytest.mark.slow
@pytest.mark.parametrize("event, step", [("on_epoch_end", 6), ("on_train_end", None)])
def test_a_resumed_run_ends_at_the_epoch_where_it_would_have(train_few, tmp_path, pretend, event, step):
    """Cut at the end of the third epoch, before its evaluation, or when it has just been stopped."""
    pretend([0.1, 0.3, 0.2, 0.25, 0.9, 0.9])
    options = {"num_train_epochs": 6, "early_stopping_patience": 2, "ema_decay": 0.5, **TWO_STEPS}
    whole = train_few(tmp_path / "whole", **options)
    with power_cut(event, step):
        train_few(tmp_path / "cut", **options)
    assert main(["train", "--resume", str(tmp_path / "cut")]) == 0
    assert (tmp_path / "cut/model/model.safetensors").read_bytes() == whole.weights
    assert checkpoint_steps(tmp_path / "cut") == checkpoint_steps(whole.folder) == [4, 8]


def test_a_damaged_checkpoint_of_a_new_best_epoch_leaves_the_one_before(train_few, tmp_path, pretend):
    pretend([0.5, 0.4, 0.6, 0.3])
    with power_cut("on_epoch_begin", 6):
        train_few(tmp_path / "cut", num_train_epochs=4, **TWO_STEPS)
    (tmp_path / "cut/checkpoints/checkpoint-6/model.safetensors").write_bytes(b"")
    assert last_checkpoint(tmp_path / "cut/checkpoints").name == "checkpoint-4"


def test_the_saved_model_is_the_average_at_the_best_epoch(train_few, tmp_path, evaluate, few_texts):
    run = train_few(tmp_path / "run", num_train_epochs=8, ema_decay=0.8, learning_rate=3e-2)
    state = newest_state(run.folder)
    best = int(state["best_model_checkpoint"].rpartition("-")[2])
    assert_saved(run, best)
    plain = load_file(run.folder / f"checkpoints/checkpoint-{best}/model.safetensors")
    assert any((load(run.weights)[name] != value).any() for name, value in plain.items())
    assert run.metrics["dev"]["f1"] == state["best_metric"] == evaluate(few_texts.dev, run.model)["f1"] > 0


@pytest.mark.parametrize("options", [
    {"keep_best": False}, {"dev_file": "", "dev_fraction": 0, "early_stopping_patience": 1},
], ids=["keep_best false", "no dev"])  # fmt: skip
def test_the_last_epoch_is_kept_without_dev_data_or_if_so_told(train_few, few_texts, tmp_path, pretend, options):
    pretend([0.1, 0.3, 0.2])
    options = {"num_train_epochs": 3, "ema_decay": 0.5, "test_file": few_texts.dev, **TWO_STEPS, **options}
    run = train_few(tmp_path / "run", **options)
    assert_saved(run, 6)
    has_dev = "keep_best" in options
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
def test_models_of_several_seeds_are_scored_as_an_ensemble(few_texts, evaluate, tmp_path):
    def scores(name, **keys):
        config = {**TINY, "train_file": few_texts.train, "dev_file": few_texts.dev, "output_dir": tmp_path / name}
        assert main(["train", *run_words({**config, **keys})]) == 0
        (summary,) = json.loads((tmp_path / name / "summary.json").read_text("utf-8"))["variants"]
        return summary["scores"]["dev.f1"]

    together = scores("seeds", seeds="3,5", num_train_epochs=6, learning_rate=3e-2)["ensemble"]
    models = [tmp_path / "seeds" / seed / "model" for seed in ("seed_3", "seed_5")]
    assert together == evaluate(few_texts.dev, *models)["f1"] > 0
    # of other texts the models have other vocabularies, and no score together
    assert "ensemble" not in scores("drawn", seeds="1,2", num_train_epochs=1, train_texts=30)


# Without random numbers in the model, with all texts in batches that both ways of training have.
OPTIONS = {
    "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "logging_steps": 1, "num_train_epochs": 2,
    "learning_rate": 1e-3, "ema_decay": 0.5,
}  # fmt: skip


def losses(folder):
    return [entry["loss"] for entry in newest_state(folder)["log_history"] if "loss" in entry]


@pytest.mark.slow
def test_two_processes_train_as_one_with_larger_batches(train, few_texts, write, tmp_path):
    texts = write(b"".join(few_texts.train.read_bytes().splitlines(keepends=True)[:40]))
    options = {"train_file": texts, "dev_file": few_texts.dev, **OPTIONS}
    of_two = {**TINY, **options, "output_dir": tmp_path / "two", "per_device_train_batch_size": 4}
    launch(tmp_path, REPOSITORY / "tools/train_ner.py", *run_words(of_two))
    one = train(tmp_path / "one", **options, per_device_train_batch_size=8)
    assert len(losses(one.folder)) == 10
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(one.folder), rtol=1e-5)
    # the first process alone writes
    assert {path.name for path in (tmp_path / "two").iterdir()} == {path.name for path in one.folder.iterdir()}
    assert len(list((tmp_path / "two/vdl").iterdir())) == 1
    assert load_file(tmp_path / "two/model/model.safetensors").keys() == load(one.weights).keys()
