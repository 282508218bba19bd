"""Checkpoints: everything comes back, and nothing in them can run."""

import json
import os
import pickle
import random

import numpy as np
import paddle
import pytest

from tasks.common.errors import InputError
from tasks.common.training import checkpoints
from tasks.common.training.checkpoints import (
    read_checkpoint_tensors,
    read_optimizer,
    read_random_state,
    write_optimizer,
    write_random_state,
    write_tensors,
)


class Trained:
    """A layer with its optimizer and schedule, some steps on."""

    def __init__(self, steps, seed=0):
        paddle.seed(seed)
        self.layer = paddle.nn.Linear(3, 2)
        self.schedule = paddle.optimizer.lr.LambdaDecay(0.1, lambda step: 1 / (1 + step))
        self.optimizer = paddle.optimizer.AdamW(self.schedule, parameters=self.layer.parameters())
        self.train(steps)

    def train(self, steps):
        for number in range(steps):
            self.layer(paddle.full([4, 3], number + 1.0)).square().sum().backward()
            self.optimizer.step()
            self.optimizer.clear_grad()
            self.schedule.step()

    def weights(self):
        return self.layer.weight.numpy()


def test_optimizer_and_schedule_go_on_as_if_there_had_been_no_break(tmp_path):
    whole = Trained(5)
    write_optimizer(tmp_path, whole.optimizer, whole.schedule)
    write_tensors(tmp_path / "weights.safetensors", whole.layer.state_dict())
    again = Trained(2, seed=1)
    # the optimizer knows its parameters by their names
    names = {old.name: new.name for old, new in zip(whole.layer.parameters(), again.layer.parameters())}
    state = read_checkpoint_tensors(tmp_path / checkpoints.OPTIMIZER_FILE)
    renamed = {}
    for name, value in state.items():
        for old, new in names.items():
            name = name.replace(old, new)
        renamed[name] = paddle.to_tensor(value)
    write_tensors(tmp_path / checkpoints.OPTIMIZER_FILE, renamed)
    again.layer.set_state_dict(read_checkpoint_tensors(tmp_path / "weights.safetensors"))
    read_optimizer(tmp_path, again.optimizer, again.schedule)
    assert again.schedule.last_epoch == whole.schedule.last_epoch == 5
    assert (again.weights() == whole.weights()).all()
    for trained in (whole, again):
        trained.train(3)
    assert (again.weights() == whole.weights()).all()


# Paddle 2.6.2 does not tell where its generator is; the recipes draw by numpy.
PADDLE_TELLS = len(paddle.framework.core.default_cpu_generator().get_state().__getstate__()) > 3


def draws():
    of_paddle = (paddle.rand([3]).tolist(), paddle.randn([2]).tolist()) if PADDLE_TELLS else ()
    return random.random(), np.random.rand(), np.random.randn(), *of_paddle


def test_random_numbers_go_on_as_if_there_had_been_no_break(tmp_path):
    np.random.randn()  # of each two normal numbers numpy keeps one
    paddle.rand([5])
    write_random_state(tmp_path, 0)
    expected = draws()
    random.seed(1)
    np.random.seed(1)
    paddle.seed(1)
    assert draws() != expected
    read_random_state(tmp_path, 0)
    assert draws() == expected


def test_files_hold_no_pickle(tmp_path):
    trained = Trained(2)
    write_optimizer(tmp_path, trained.optimizer, trained.schedule)
    write_random_state(tmp_path, 0)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["optimizer.json", "optimizer.safetensors", "random_state_0.json"]
    for name in ("optimizer.json", "random_state_0.json"):
        assert json.loads((tmp_path / name).read_text())


class Bomb:
    """As a pickle: makes a file where it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


READERS = {
    checkpoints.MODEL_FILE: lambda folder: read_checkpoint_tensors(folder / checkpoints.MODEL_FILE),
    checkpoints.OPTIMIZER_FILE: lambda folder: _read_optimizer(folder),
    checkpoints.NUMBERS_FILE: lambda folder: _read_optimizer(folder),
    "random_state_0.json": lambda folder: read_random_state(folder, 0),
}


def _read_optimizer(folder):
    trained = Trained(0)
    read_optimizer(folder, trained.optimizer, trained.schedule)


@pytest.fixture
def folder(tmp_path):
    trained = Trained(1)
    write_tensors(tmp_path / checkpoints.MODEL_FILE, trained.layer.state_dict())
    write_optimizer(tmp_path, trained.optimizer, trained.schedule)
    write_random_state(tmp_path, 0)
    return tmp_path


@pytest.mark.parametrize("name", READERS)
def test_pickle_in_place_of_a_file_is_refused_and_not_run(folder, name):
    (folder / name).write_bytes(pickle.dumps(Bomb(folder / "made")))
    with pytest.raises(InputError, match=name):
        READERS[name](folder)
    assert not (folder / "made").exists()


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("damage", ["missing", "cut", "emptied"])
def test_damaged_file_is_named(folder, name, damage):
    content = (folder / name).read_bytes()
    if damage == "missing":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content[: len(content) // 2] if damage == "cut" else b"")
    with pytest.raises(InputError, match=name):
        READERS[name](folder)


@pytest.mark.parametrize("name", [checkpoints.NUMBERS_FILE, "random_state_0.json"])
@pytest.mark.parametrize("content", ["[]", "{}", "null", '{"python": 1, "schedule": 1}', '{"python": [3, [1], null]}'])
def test_json_of_another_form_is_named(folder, name, content):
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=name):
        READERS[name](folder)
