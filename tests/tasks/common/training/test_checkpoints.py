"""Checkpoints: everything comes back, nothing in them can run, and the newest complete one is taken."""

import json
import os
import pickle

import numpy as np
import paddle
import pytest

from paddle_rope.tasks.common.training import checkpoints
from paddle_rope.tasks.common.training.checkpoints import (
    COMPLETE_FILE,
    TRAINER_STATE_FILE,
    last_checkpoint,
    mark_complete,
)
from tests.helpers.runs import Bomb
from tests.tasks.ner.conftest import error_of


class Trained:
    """A layer with its optimizer and schedule, some steps on."""

    def __init__(self, steps):
        paddle.seed(0)
        with paddle.utils.unique_name.guard():  # the optimizer knows its parameters by their names
            self.layer = paddle.nn.Linear(3, 2)
            self.schedule = paddle.optimizer.lr.LambdaDecay(0.1, lambda step: 1 / (1 + step))
            self.optimizer = paddle.optimizer.AdamW(self.schedule, parameters=self.layer.parameters())
            for number in range(steps):
                self.layer(paddle.full([4, 3], number + 1.0)).square().sum().backward()
                self.optimizer.step()
                self.optimizer.clear_grad()
                self.schedule.step()


@pytest.fixture
def folder(tmp_path):
    """The files of a checkpoint of ``Trained(5)``, without a mark."""
    trained = Trained(5)
    checkpoints.write_tensors(tmp_path / checkpoints.MODEL_FILE, trained.layer.state_dict())
    checkpoints.write_optimizer(tmp_path, trained.optimizer, trained.schedule)
    (tmp_path / TRAINER_STATE_FILE).write_text('{"global_step": 5}', encoding="utf-8")
    return tmp_path


def _read_optimizer(folder):
    trained = Trained(0)
    checkpoints.read_optimizer(folder, trained.optimizer, trained.schedule)


READERS = {
    checkpoints.MODEL_FILE: lambda folder: checkpoints.read_checkpoint_tensors(folder / checkpoints.MODEL_FILE),
    checkpoints.OPTIMIZER_FILE: _read_optimizer,
    checkpoints.NUMBERS_FILE: _read_optimizer,
    TRAINER_STATE_FILE: checkpoints.read_trainer_state,
}


NO_JSON_OF_IT = {  # name -> JSON that is not the content of this file
    TRAINER_STATE_FILE: [b"[]", b"null", b'{"global_step": 3, "unknown": 3}', b"[" * 100_000],
    checkpoints.NUMBERS_FILE: [b"[]", b"{}", b"null", b'{"schedule": 1}'],
}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_named_and_a_pickle_is_not_run(folder, name):
    path = folder / name
    cut, bomb = path.read_bytes()[: path.stat().st_size // 2], pickle.dumps(Bomb(folder / "made"))
    for content in (cut, b"", bomb, *NO_JSON_OF_IT.get(name, ())):
        path.write_bytes(content)
        assert name in error_of(READERS[name], folder)
    path.unlink()
    assert name in error_of(READERS[name], folder)
    assert not (folder / "made").exists()


def test_the_loss_scale_is_that_of_the_checkpoint(folder):
    class Scaler(dict):  # as Paddle's, which is off on a CPU
        state_dict, load_state_dict = dict.copy, dict.update

    trained, before, after = Trained(5), Scaler(scale=np.float32([64]), good_steps=3), Scaler(scale=None, good_steps=0)
    checkpoints.write_optimizer(folder, trained.optimizer, trained.schedule, before)
    checkpoints.read_optimizer(folder, trained.optimizer, trained.schedule, after)
    assert before == after and after["scale"].dtype == np.float32


# ---- which checkpoint is taken


def make(folder, step, best=None, **state):
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "weights").write_bytes(bytes(range(200)))
    best = None if best is None else str(folder / f"checkpoint-{best}")
    values = {"global_step": step, "log_history": [{"loss": 0.5, "step": 1}], "best_model_checkpoint": best, **state}
    (path / TRAINER_STATE_FILE).write_text(json.dumps(values), encoding="utf-8")
    mark_complete(path)
    return path


def test_mark_comes_after_the_names_of_the_files_are_on_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("secrets.token_hex", lambda size: "random")
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    path = make(tmp_path, 1)
    mark = str(path / f".{COMPLETE_FILE}.random.tmp")  # before it gets its name
    assert synced == [str(path), mark, str(path), str(tmp_path)]


def change(path):
    (path / "weights").write_bytes((path / "weights").read_bytes().replace(b"2", b"3"))


def rewrite_state(content):
    def rewrite(path):
        (path / TRAINER_STATE_FILE).write_text(content, encoding="utf-8")
        mark_complete(path)

    return rewrite


DAMAGED = {
    "cut": lambda path: os.truncate(path / "weights", 100),
    "change": change,
    "remove": lambda path: (path / "weights").unlink(),
    "empty mark": lambda path: (path / COMPLETE_FILE).write_bytes(b""),  # of a power cut where files are not synced
    "another step": rewrite_state('{"global_step": 7}'),
    "nonsense": rewrite_state('{"global_step": "30", "max": NaN'),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_checkpoint_is_passed_over_with_a_line(tmp_path, capsys, damage):
    paths = [make(tmp_path, step) for step in (9, 10, 100)]  # numbers, not words
    DAMAGED[damage](paths[-1])
    assert last_checkpoint(tmp_path) == paths[1]
    out = capsys.readouterr().out
    assert out.startswith(f"{paths[2]}: is damaged (") and f"{paths[1]} is the newest" in out and out.count("\n") == 1
    for path in paths[:2]:
        DAMAGED[damage](path)
    message = error_of(last_checkpoint, tmp_path)
    assert "checkpoint-100: is damaged " in message and "train anew" in message


def test_a_checkpoint_that_is_cut_or_whose_best_is_damaged_is_passed_over(tmp_path, capsys):
    first, best = make(tmp_path, 10), make(tmp_path, 20)
    make(tmp_path, 30, best=20)
    change(best)
    assert last_checkpoint(tmp_path) == first
    assert "checkpoint-20/weights is not as it was written" in capsys.readouterr().out
    for step in (20, 30):
        (tmp_path / f"checkpoint-{step}" / COMPLETE_FILE).unlink()
    assert last_checkpoint(tmp_path) == first and capsys.readouterr().out == ""


def test_the_best_and_the_one_before_stay(tmp_path):
    for step in (10, 20, 30, 50):
        make(tmp_path, step)
    (make(tmp_path, 35) / COMPLETE_FILE).unlink()
    newest = make(tmp_path, 40)
    checkpoints.remove_older(newest, [str(tmp_path / "elsewhere" / "checkpoint-10"), None], before=1)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-10", "checkpoint-30", "checkpoint-40"}
    checkpoints.remove_older(newest, [None], before=0)
    assert [*tmp_path.iterdir()] == [newest]
