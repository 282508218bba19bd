"""An interrupted run goes on to the result that it would have had."""

import errno
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import train_ner
import yaml
from safetensors.numpy import load, load_file
from visualdl import LogReader

from tasks.common.cli.own_command import own_command
from tasks.common.runs.locks import locked
from tasks.common.training.complete import COMPLETE_FILE, last_checkpoint
from tasks.common.training.monitor import VisualDLMonitor
from tasks.ner.reports.monitoring import NerMonitor

REPOSITORY = Path(__file__).resolve().parents[3]
EPOCHS, STEPS = 4, 5  # 32 texts, 11 batches an epoch: 5 steps of two, and one batch that is left over
# All that keeps a state between steps, or draws random numbers.
OPTIONS = {
    "train_texts": 32,
    "num_train_epochs": EPOCHS,
    "per_device_train_batch_size": 3,
    "gradient_accumulation_steps": 2,
    "learning_rate": 2e-2,
    "logging_steps": 1,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "character_dropout": 0.1,
    "feature_dropout": 0.1,
    "features": "segmentation,bigrams,dictionary",
    "masked_lm_epochs": 1,
    "ema_decay": 0.8,
}


class PowerCut(Exception):
    """Ends a run at once."""


def power_cut(*arguments, **keywords):
    raise PowerCut


@pytest.fixture(scope="module")
def options(few_texts, each_epoch_is_better):
    return {**OPTIONS, "train_file": few_texts.train, "dev_file": few_texts.dev}


@pytest.fixture(scope="module")
def whole(train, options, tmp_path_factory):
    """A run that was not interrupted."""
    return train(tmp_path_factory.mktemp("whole") / "run", **options)


@pytest.fixture
def cut_run(train, options, tmp_path, monkeypatch):
    """``cut_run(step)``: the folder of a run whose process ended after this step."""

    def cut_run(step, **more):
        def on_step_end(self, args, state, control, **kwargs):
            VisualDLMonitor.on_step_end(self, args, state, control, **kwargs)
            if state.global_step == step:
                raise PowerCut

        with monkeypatch.context() as patch, pytest.raises(PowerCut):
            patch.setattr(NerMonitor, "on_step_end", on_step_end, raising=False)
            train(tmp_path / "cut", **{**options, **more})
        return tmp_path / "cut"

    return cut_run


def resume(folder):
    assert train_ner.main(["--resume", str(folder)]) == 0


def assert_equal_results(folder, whole):
    for name in ("model/model.safetensors", "model/config.json", "model/vocab.txt", "predictions_dev.jsonl"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes(), name
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert {**metrics, "train_seconds": 0} == {**whole.metrics, "train_seconds": 0}
    assert (folder / "epochs.csv").read_bytes() == (whole.folder / "epochs.csv").read_bytes()
    assert logged(folder) == logged(whole.folder)
    # also what is behind the best epoch
    last = f"checkpoints/checkpoint-{EPOCHS * STEPS}"
    for name in ("model.safetensors", "average.safetensors"):
        first, second = (load_file(run / last / name) for run in (folder, whole.folder))
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[key], second[key]) for key in first), name


def logged(folder):
    """The VisualDL log's (step, value) by name; there is one file."""
    (path,) = (folder / "vdl").iterdir()
    reader = LogReader(file_path=str(path))
    scalars = {
        name: [(record.id, record.value) for record in reader.get_data("scalar", name)]
        for name in reader.get_tags()["scalar"]
        if not name.endswith("characters_per_second")
    }
    return {**scalars, "configuration": len(reader.get_data("text", "configuration"))}


def test_run_cut_in_the_middle_of_an_epoch_ends_as_if_it_had_not_been(whole, cut_run, capsys):
    folder = cut_run(STEPS + 3)
    checkpoint = folder / "checkpoints" / f"checkpoint-{STEPS}"
    unfinished = shutil.copytree(checkpoint, folder / "checkpoints" / f"checkpoint-{2 * STEPS}")
    (unfinished / COMPLETE_FILE).unlink()
    (unfinished / "model.safetensors").write_bytes(b"half of it")
    resume(folder)
    assert f"resuming from {checkpoint}" in capsys.readouterr().out
    assert_equal_results(folder, whole)


EACH_STEP = {"checkpoint_minutes": 1e-9}  # a checkpoint after each


@pytest.fixture(scope="module")
def sparsely_logged(train, options, tmp_path_factory):
    """A run whose log is written every third step, so that at most checkpoints a part of the loss is not logged yet."""
    return train(tmp_path_factory.mktemp("sparse") / "run", **{**options, "logging_steps": 3})


def test_checkpoint_within_an_epoch_leads_to_the_same_result(sparsely_logged, cut_run, capsys):
    folder = cut_run(STEPS + 3, logging_steps=3, **EACH_STEP)
    resume(folder)
    assert f"resuming from {folder / 'checkpoints' / f'checkpoint-{STEPS + 2}'}" in capsys.readouterr().out
    assert_equal_results(folder, sparsely_logged)


def test_run_cut_in_the_masked_language_model_is_not_begun_anew(whole, train, options, tmp_path, monkeypatch, capsys):
    """Twice: within the phase, and behind its end."""
    folder, on_step_end = tmp_path / "cut", VisualDLMonitor.on_step_end

    def cut_at(step, group):
        def cut(self, args, state, control, **kwargs):
            on_step_end(self, args, state, control, **kwargs)
            if (self.group, state.global_step) == (group, step):
                raise PowerCut

        patch.setattr(VisualDLMonitor, "on_step_end", cut)

    before = folder / "checkpoints" / "before"
    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        cut_at(STEPS - 1, "pretraining")
        train(folder, **options, **EACH_STEP)
    assert last_checkpoint(before).name == f"checkpoint-{STEPS - 2}"
    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        cut_at(1, "1_train")
        resume(folder)
    assert last_checkpoint(before).name == f"checkpoint-{STEPS}"
    capsys.readouterr()
    resume(folder)
    assert f"resuming from {before / f'checkpoint-{STEPS}'}" in capsys.readouterr().out
    assert_equal_results(folder, whole)
    assert not before.exists()


def test_damaged_checkpoint_is_passed_over_with_a_line(whole, cut_run, capsys):
    folder = cut_run(2 * STEPS + 1)
    newest, one_before = (folder / "checkpoints" / f"checkpoint-{steps}" for steps in (2 * STEPS, STEPS))
    path = newest / "optimizer.safetensors"
    os.truncate(path, path.stat().st_size // 2)
    resume(folder)
    damage = f"{newest}: is damaged (optimizer.safetensors is not as it was written); {one_before} is the newest whole"
    assert damage in capsys.readouterr().out
    assert_equal_results(folder, whole)


@pytest.fixture
def ends_at(config_file, options, tmp_path, monkeypatch, capsys):
    """``ends_at(step, action)``: status and last line of a run in which something happens after this step."""

    def ends_at(step, action):
        def on_step_end(self, args, state, control, **kwargs):
            VisualDLMonitor.on_step_end(self, args, state, control, **kwargs)
            if state.global_step == step:
                action()

        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        with monkeypatch.context() as patch:
            patch.setattr(NerMonitor, "on_step_end", on_step_end, raising=False)
            status = train_ner.main([str(config_file), "--output_dir", str(tmp_path / "run"), *words])
        err = capsys.readouterr().err
        assert "Traceback" not in err
        return status, err.splitlines()[-1]

    return ends_at


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_writes_a_checkpoint_and_says_how_to_resume(whole, ends_at, tmp_path, number):
    folder = tmp_path / "run"
    status, line = ends_at(STEPS + 2, lambda: os.kill(os.getpid(), number))
    how = f"go on with: {own_command()} train --resume {folder}"
    assert (status, line) == (128 + number, f"{folder}: ended by a signal; {how}")
    assert last_checkpoint(folder / "checkpoints").name == f"checkpoint-{STEPS + 3}"  # of the step at hand
    resume(folder)
    assert_equal_results(folder, whole)


def test_run_goes_on_once_a_full_disk_has_room(whole, ends_at, tmp_path, monkeypatch):
    folder, error = tmp_path / "run", OSError(errno.ENOSPC, "No space left on device")

    def fill_disk():
        def write(*arguments):
            raise error

        patch.setattr("tasks.common.training.trainer.write_optimizer", write)

    with monkeypatch.context() as patch:
        status, line = ends_at(2 * STEPS - 1, fill_disk)
    how = f"make room, then go on with: {own_command()} train --resume {folder}"
    assert (status, line) == (2, f"error: {folder}: no room left to write ({error}); {how}")
    assert [path.name for path in (folder / "checkpoints").glob("checkpoint-*")] == [f"checkpoint-{STEPS}"]
    resume(folder)
    assert_equal_results(folder, whole)


def test_folder_that_is_removed_meanwhile_is_told(ends_at, tmp_path):
    status, line = ends_at(STEPS - 1, lambda: shutil.rmtree(tmp_path / "run"))
    assert status == 2 and line.startswith(f"error: {tmp_path / 'run'}")
    assert line.endswith("was removed while the run worked in it; train anew")


class Bomb:
    """As a pickle: makes a folder where it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("cut_at", [STEPS + 3, EPOCHS * STEPS])
def test_pickles_that_a_stranger_put_into_a_checkpoint_are_not_read(whole, cut_run, tmp_path, cut_at):
    """Under all names that PaddleNLP's trainer and earlier versions read."""
    folder = cut_run(cut_at)
    names = ("average.pdparams", "rng_state.pth", "optimizer.pdopt", "scheduler.pdparams", "scaler.pdparams")
    for checkpoint in (folder / "checkpoints").iterdir():
        for name in (*names, "model_state.pdparams", "training_args.bin"):
            (checkpoint / name).write_bytes(pickle.dumps(Bomb(tmp_path / "made")))
    resume(folder)
    assert not (tmp_path / "made").exists()
    assert_equal_results(folder, whole)


def test_resumed_run_may_be_cut_again_and_moved(whole, cut_run, tmp_path, monkeypatch):
    folder = cut_run(2 * STEPS + 1)
    moved = tmp_path / "elsewhere" / "run"
    moved.parent.mkdir()
    shutil.move(folder, moved)
    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(NerMonitor, "on_epoch_end", power_cut, raising=False)
        resume(moved)
    resume(moved)
    assert_equal_results(moved, whole)
    assert not folder.exists()
    checkpoints = {path.name for path in (moved / "checkpoints").iterdir() if path.name.startswith("checkpoint-")}
    assert checkpoints == {f"checkpoint-{EPOCHS * STEPS}"}  # the best is the last here


@pytest.mark.parametrize("limits, steps", [({"num_train_epochs": 2}, 12), ({"max_steps": 8}, 8)], ids=str)
def test_run_cut_after_its_last_checkpoint_only_writes_its_results(
    train, few_texts, tmp_path, monkeypatch, each_epoch_is_better, limits, steps
):
    options = {"train_file": few_texts.train, "dev_file": few_texts.dev, "lr_scheduler_type": "constant", **limits}
    options["ema_decay"] = 0.8
    whole = train(tmp_path / "whole", **options)
    with monkeypatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(NerMonitor, "on_train_end", power_cut)
        train(tmp_path / "cut", **options)
    checkpoint = last_checkpoint(tmp_path / "cut/checkpoints")
    assert checkpoint.name == f"checkpoint-{steps}"
    state = (checkpoint / "trainer_state.json").read_bytes()
    resume(tmp_path / "cut")
    assert (tmp_path / "cut/model/model.safetensors").read_bytes() == whole.weights
    assert last_checkpoint(tmp_path / "cut/checkpoints") == checkpoint
    assert (checkpoint / "trainer_state.json").read_bytes() == state


def test_process_that_is_killed_can_be_resumed(few_texts, config_file, tmp_path, without_pictures):
    words = ["--train_file", few_texts.train, "--dev_file", few_texts.dev, "--num_train_epochs", "300"]
    command = [sys.executable, REPOSITORY / "tools/train_ner.py", config_file, "--output_dir", tmp_path / "run", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            limit = time.monotonic() + 300
            while not list(tmp_path.glob(f"run/checkpoints/*/{COMPLETE_FILE}")) and time.monotonic() < limit:
                assert process.poll() is None
                time.sleep(0.05)
        finally:
            process.kill()
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text(encoding="utf-8"))
    reached = int(last_checkpoint(tmp_path / "run/checkpoints").name.split("-")[1])
    epochs = reached // 6 + 1  # 45 texts in batches of 8
    assert epochs < 300
    (tmp_path / "run/config.yaml").write_text(yaml.safe_dump({**config, "num_train_epochs": epochs}), encoding="utf-8")
    resume(tmp_path / "run")
    assert load((tmp_path / "run/model/model.safetensors").read_bytes())


# ---- nothing to resume


@pytest.fixture
def resume_fails(fails):
    return lambda *words: fails(train_ner, "--resume", *words)


def test_finished_run_is_not_resumed(resume_fails, whole, tmp_path):
    shutil.copytree(whole.folder, tmp_path / "run")
    assert resume_fails("run") == "run: the run is complete; its scores are in run/metrics.json"


@pytest.mark.parametrize("name", ["missing", "empty", "file"])
def test_folder_that_is_no_run_is_not_resumed(resume_fails, tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert resume_fails(name) == f"{name}: no config.yaml here; give the OUTPUT_DIR of an interrupted run"


def test_run_that_ended_before_its_first_checkpoint_begins_anew(whole, cut_run, capsys):
    folder = cut_run(STEPS - 1)
    unfinished = next((folder / "checkpoints").rglob(COMPLETE_FILE)).parent
    shutil.copytree(unfinished, folder / "checkpoints" / "checkpoint-3", ignore=lambda *_: [COMPLETE_FILE])
    shutil.rmtree(folder / "checkpoints" / "before")
    (folder / "inputs.json").rename(folder / "kept.json")  # as if it had ended before that, too
    resume(folder)
    assert "begins anew" in capsys.readouterr().out
    assert (folder / "inputs.json").read_bytes() == (folder / "kept.json").read_bytes()
    assert_equal_results(folder, whole)


def test_begun_anew_are_only_runs_of_nobody_else_and_with_the_same_data(resume_fails, cut_run, few_texts, tmp_path):
    train_file = shutil.copy(few_texts.train, tmp_path / "train.json")
    folder = cut_run(STEPS - 1, masked_lm_epochs=0, train_file=str(train_file))
    log = next((folder / "vdl").iterdir())
    with locked(folder):
        assert "another process works on this run" in resume_fails(folder)
    Path(train_file).write_text(Path(train_file).read_text(encoding="utf-8") * 2, encoding="utf-8")
    assert "has changed since the run began" in resume_fails(folder)
    assert log.is_file()


@pytest.mark.parametrize("name", ["checkpoints", "model", "vdl", "config.yaml", "checkpoints/checkpoint-3"])
def test_links_in_a_run_folder_are_refused(resume_fails, cut_run, tmp_path, name):
    folder, elsewhere = cut_run(STEPS + 1), tmp_path / "elsewhere"
    link = folder / name
    if link.exists():
        link.rename(elsewhere)
    else:
        elsewhere.mkdir()
    link.symlink_to(elsewhere)
    before = sorted(path for path in elsewhere.rglob("*"))
    message = resume_fails(folder)
    assert message.startswith(f"{link}: ") and "symbolic links" in message
    assert sorted(path for path in elsewhere.rglob("*")) == before


@pytest.mark.parametrize("words", [[], ["run", "--seed", "1"], ["run", "other"]])
def test_resuming_takes_the_folder_and_nothing_else(fails, words):
    assert "the run keeps its configuration" in fails(train_ner, "--resume", *words)
