"""An interrupted run goes on to the result that it would have had."""

import errno
import json
import os
import pickle
import shutil
import signal

import numpy as np
import pytest
from safetensors.numpy import load_file

from tasks.commands.main import main
from tasks.common.training.checkpoints import COMPLETE_FILE, last_checkpoint
from tests.helpers.runs import at_event, power_cut
from tests.tasks.ner.conftest import log_of

EPOCHS, STEPS = 4, 5  # 32 texts, 11 batches an epoch: 5 steps of two, and one batch that is left over
# All that keeps a state between steps, or draws random numbers.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "character_dropout", "feature_dropout")
OPTIONS = {
    **{"train_texts": 32, "per_device_train_batch_size": 3, "gradient_accumulation_steps": 2, "learning_rate": 2e-2},
    **{"num_train_epochs": EPOCHS, "masked_lm_epochs": 1, "ema_decay": 0.8, "logging_steps": 1},
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


@pytest.fixture
def cut_run(start, tmp_path):
    """``cut_run(step)``: the folder of a run whose process ended after this step."""

    def cut_run(step, **more):
        with power_cut("on_step_end", step):
            start(tmp_path / "cut", **more)
        return tmp_path / "cut"

    return cut_run


def resume(folder):
    assert main(["train", "--resume", str(folder)]) == 0


def checkpoint(folder, step):
    return folder / "checkpoints" / f"checkpoint-{step}"


def assert_equal_results(folder, whole):
    names = ("model/model.safetensors", "model/config.json", "model/vocab.txt", "predictions_dev.jsonl", "epochs.csv")
    for name in names:
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes(), name
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert {**metrics, "train_seconds": 0} == {**whole.metrics, "train_seconds": 0}
    assert logged(folder) == logged(whole.folder)
    for name in ("model.safetensors", "average.safetensors"):  # also what follows the best epoch
        first, second = (load_file(checkpoint(run, EPOCHS * STEPS) / name) for run in (folder, whole.folder))
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[key], second[key]) for key in first), name


def logged(folder):
    """The VisualDL log's (step, value) by name."""
    reader = log_of(folder / "vdl")
    scalars = {
        name: [(record.id, record.value) for record in reader.get_data("scalar", name)]
        for name in reader.get_tags()["scalar"]
        if not name.endswith("characters_per_second")
    }
    return {**scalars, "configuration": len(reader.get_data("text", "configuration"))}


# ---- what may have happened to a run that was cut


def unfinished_checkpoint(folder, tmp_path):
    newest = shutil.copytree(checkpoint(folder, STEPS), checkpoint(folder, 2 * STEPS))
    (newest / COMPLETE_FILE).unlink()
    (newest / "model.safetensors").write_bytes(b"half of it")


def damaged_checkpoint(folder, tmp_path):
    path = checkpoint(folder, 2 * STEPS) / "optimizer.safetensors"
    os.truncate(path, path.stat().st_size // 2)


class Bomb:
    """As a pickle: makes a folder where it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def pickles(folder, tmp_path):
    """Under all names that PaddleNLP's trainer and earlier versions read."""
    names = ("average.pdparams", "rng_state.pth", "optimizer.pdopt", "scheduler.pdparams", "scaler.pdparams")
    for one in (folder / "checkpoints").iterdir():
        for name in (*names, "model_state.pdparams", "training_args.bin"):
            (one / name).write_bytes(pickle.dumps(Bomb(tmp_path / "made")))


def nothing_but_an_unfinished_checkpoint(folder, tmp_path):
    complete = next((folder / "checkpoints").rglob(COMPLETE_FILE)).parent
    shutil.copytree(complete, checkpoint(folder, 3), ignore=lambda *_: [COMPLETE_FILE])
    shutil.rmtree(folder / "checkpoints" / "before")
    (folder / "inputs.json").unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    "step, change, resumed_from",
    [
        (STEPS + 3, unfinished_checkpoint, STEPS),
        (2 * STEPS + 1, damaged_checkpoint, STEPS),
        (STEPS + 3, pickles, STEPS),
        (EPOCHS * STEPS, pickles, (EPOCHS - 1) * STEPS),
        (STEPS - 1, nothing_but_an_unfinished_checkpoint, None),
    ],
)
def test_a_run_that_was_cut_ends_as_if_it_had_not_been(whole, cut_run, tmp_path, capsys, step, change, resumed_from):
    folder = cut_run(step)
    change(folder, tmp_path)
    resume(folder)
    place = f"resuming from {checkpoint(folder, resumed_from)}" if resumed_from else "begins anew"
    assert place in capsys.readouterr().out
    assert not (tmp_path / "made").exists()
    assert_equal_results(folder, whole)


@pytest.mark.slow
def test_a_checkpoint_within_an_epoch_leads_to_the_same_result(start, cut_run, tmp_path, capsys):
    more = {"logging_steps": 3}  # so that a part of the loss is not logged yet at most checkpoints
    folder = cut_run(STEPS + 3, **more, **EACH_STEP)
    resume(folder)
    assert f"resuming from {checkpoint(folder, STEPS + 2)}" in capsys.readouterr().out
    assert_equal_results(folder, start(tmp_path / "whole", **more))


@pytest.mark.slow
def test_a_run_cut_in_and_after_masked_language_modeling_does_not_repeat_it(whole, start, tmp_path, capsys):
    folder = tmp_path / "cut"
    before = folder / "checkpoints" / "before"
    with power_cut("on_step_end", STEPS - 1, group="pretraining"):
        start(folder, **EACH_STEP)
    assert last_checkpoint(before).name == f"checkpoint-{STEPS - 2}"
    with power_cut("on_step_end", 1):
        resume(folder)
    capsys.readouterr()
    resume(folder)
    assert f"resuming from {before / f'checkpoint-{STEPS}'}" in capsys.readouterr().out
    assert_equal_results(folder, whole)
    assert not before.exists()


@pytest.mark.slow
def test_a_resumed_run_may_be_cut_again_and_moved(whole, cut_run, tmp_path):
    folder = cut_run(2 * STEPS + 1)
    moved = tmp_path / "elsewhere" / "run"
    moved.parent.mkdir()
    shutil.move(folder, moved)
    with power_cut("on_epoch_end"):
        resume(moved)
    resume(moved)
    assert_equal_results(moved, whole)
    assert not folder.exists()
    assert list((moved / "checkpoints").glob("checkpoint-*")) == [checkpoint(moved, EPOCHS * STEPS)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits, steps",
    [({"num_train_epochs": 2}, 12), ({"max_steps": 8}, 8), ({"num_train_epochs": 2, "dev_fraction": 0}, 12)],
    ids=str,
)
def test_a_run_cut_after_its_last_checkpoint_only_writes_its_results(
    train_few, few_texts, tmp_path, each_epoch_is_better, limits, steps
):
    dev_file = "" if "dev_fraction" in limits else few_texts.dev  # without dev data, too
    options = {"dev_file": dev_file, "test_file": few_texts.dev, "ema_decay": 0.8, **limits}
    whole = train_few(tmp_path / "whole", lr_scheduler_type="constant", **options)
    with power_cut("on_train_end"):
        train_few(tmp_path / "cut", lr_scheduler_type="constant", **options)
    state = (checkpoint(tmp_path / "cut", steps) / "trainer_state.json").read_bytes()
    resume(tmp_path / "cut")
    assert (tmp_path / "cut/model/model.safetensors").read_bytes() == whole.weights
    assert json.loads((tmp_path / "cut/metrics.json").read_bytes())["test"] == whole.metrics["test"]
    assert (checkpoint(tmp_path / "cut", steps) / "trainer_state.json").read_bytes() == state


# ---- runs that end before they are done


def no_room(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None], ids=["SIGTERM", "SIGINT", "full disk"])
def test_a_run_that_ends_early_names_the_command_that_resumes(
    whole, config_file, few_texts, each_epoch_is_better, tmp_path, capsys, number
):
    folder, options = tmp_path / "run", {**OPTIONS, "train_file": few_texts.train, "dev_file": few_texts.dev}
    with pytest.MonkeyPatch.context() as patch:

        def stop():
            if number is None:
                patch.setattr("tasks.common.training.checkpoints.write_optimizer", no_room)
            else:
                os.kill(os.getpid(), number)

        with at_event("on_step_end", stop, STEPS + 2):
            words = [f"--{key}={value}" for key, value in options.items()]
            status = main(["train", str(config_file), "--output_dir", str(folder), *words])
    error = capsys.readouterr().err
    assert "Traceback" not in error and error.splitlines()[-1].endswith(f"train --resume {folder}")
    # a signal writes a checkpoint after the current step
    expected = (2, STEPS) if number is None else (128 + number, STEPS + 3)
    assert (status, last_checkpoint(folder / "checkpoints")) == (expected[0], checkpoint(folder, expected[1]))
    resume(folder)
    assert_equal_results(folder, whole)


def test_links_in_a_run_folder_are_refused(refused, cut_run, tmp_path):
    folder, elsewhere = cut_run(STEPS + 1), tmp_path / "elsewhere"
    for name in ("checkpoints", "vdl", "config.yaml"):
        link = (folder / name).rename(elsewhere) and folder / name
        link.symlink_to(elsewhere)
        message = refused("train", "--resume", folder)  # which leaves all files as they are
        assert message.startswith(f"{link}: ") and "symbolic link" in message
        link.unlink()
        elsewhere.rename(link)
