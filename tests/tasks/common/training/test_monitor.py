"""The VisualDL monitor's figures."""

import math
from types import SimpleNamespace

import paddle
import pytest
from visualdl import LogReader

from tasks.common.training.monitor import VisualDLMonitor

ARGS = SimpleNamespace(logging_steps=2)
LOGS = {"loss": 1.0, "learning_rate": 0.1}


def state(step=0, is_first=True):
    return SimpleNamespace(global_step=step, is_world_process_zero=is_first)


@pytest.fixture
def logged(tmp_path):
    """A monitor, and a function that reads what it has written."""
    monitor = VisualDLMonitor(tmp_path / "log", {"a": 1, "b": None}, ["f1"])
    monitor.on_train_begin(ARGS, state(), None)

    def read():
        (path,) = (tmp_path / "log").glob("*.log")
        reader = LogReader(file_path=str(path))
        tags = reader.get_tags().get("scalar", [])
        return {tag: [(record.id, record.value) for record in reader.get_data("scalar", tag)] for tag in tags}

    yield monitor, read
    monitor.on_train_end(ARGS, state(), None)


@pytest.mark.parametrize("scale", [1.0, 8.0])  # of mixed precision, which the norm leaves out
def test_gradient_norm_is_of_all_parameters_before_the_step_that_is_logged(logged, scale):
    monitor, read = logged
    model, scaler = paddle.nn.Linear(2, 1), SimpleNamespace(_scale=paddle.to_tensor([scale]))
    (model(paddle.to_tensor([[3.0, 4.0]])).sum() * scale).backward()  # gradient 3, 4 and, of the bias, 1
    for step in (0, 1):
        monitor.on_optimizer_begin(ARGS, state(step), None, model=model, scaler=scaler)
        monitor.on_log(ARGS, state(step + 1), None, logs=LOGS)
    assert read()["1_train/gradient_norm"] == [(2, pytest.approx(math.sqrt(26)))]
    assert read()["1_train/loss"] == [(1, 1.0), (2, 1.0)]


@pytest.mark.parametrize("first", ["on_step_end", "on_substep_end"])  # the second: gradients are accumulated
def test_speed_counts_characters_and_the_seconds_of_batches_alone(logged, monkeypatch, first):
    monitor, read = logged
    clock = iter([10.0, 12.0, 100.0, 102.0])
    monkeypatch.setattr("tasks.common.training.monitor.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    for characters, event in ((3, first), (5, "on_step_end")):
        inputs = {"token_mask": paddle.to_tensor([[True] * characters + [False]])}
        monitor.on_load_data_end(ARGS, state(), None, inputs=inputs)
        getattr(monitor, event)(ARGS, state(), None)
    monitor.on_log(ARGS, state(2), None, logs=LOGS)
    assert read()["1_train/characters_per_second"] == [(2, 2.0)]


def test_evaluation_is_logged_as_dev_and_only_by_the_first_process(logged, tmp_path):
    monitor, read = logged
    other = VisualDLMonitor(tmp_path / "other", {}, ["f1"])
    other.on_train_begin(ARGS, state(is_first=False), None)
    for one in (monitor, other):
        one.on_evaluate(ARGS, state(7), None, metrics={"eval_f1": 0.5, "epoch": 1})
        one.on_log(ARGS, state(7), None, logs={"eval_f1": 0.5})
    other.on_log(ARGS, state(1), None, logs=LOGS)
    other.on_train_end(ARGS, state(1), None)
    assert read() == {"dev/f1": [(7, 0.5)]} and not (tmp_path / "other").exists()
