"""The VisualDL monitor's figures."""

import math
from types import SimpleNamespace

import paddle
import pytest
from visualdl import LogReader

from tasks.common.training.monitor import VisualDLMonitor

ARGS = SimpleNamespace(logging_steps=2)


def state(step=0, first_process=True):
    return SimpleNamespace(global_step=step, is_world_process_zero=first_process)


@pytest.fixture
def monitor(tmp_path):
    monitor = VisualDLMonitor(tmp_path / "log", {"a": 1, "b": None}, ["f1"])
    monitor.on_train_begin(ARGS, state(), None)
    yield monitor
    monitor.on_train_end(ARGS, state(), None)


def read(folder):
    (path,) = (folder / "log").glob("*.log")
    reader = LogReader(file_path=str(path))
    tags = reader.get_tags().get("scalar", [])
    return {tag: [(record.id, record.value) for record in reader.get_data("scalar", tag)] for tag in tags}


def model_with_gradient(scale=1.0):
    layer = paddle.nn.Linear(2, 1)
    (layer(paddle.to_tensor([[3.0, 4.0]])).sum() * scale).backward()  # gradient 3, 4 and, of the bias, 1
    return layer


def test_gradient_norm_is_that_of_all_parameters_before_the_step_that_is_logged(monitor, tmp_path):
    model = model_with_gradient()
    monitor.on_optimizer_begin(ARGS, state(0), None, model=model)
    monitor.on_log(ARGS, state(1), None, logs={"loss": 1.0, "learning_rate": 0.1})
    monitor.on_optimizer_begin(ARGS, state(1), None, model=model)
    monitor.on_log(ARGS, state(2), None, logs={"loss": 0.5, "learning_rate": 0.1})
    figures = read(tmp_path)
    assert figures["1_train/gradient_norm"] == [(2, pytest.approx(math.sqrt(26)))]
    assert figures["1_train/loss"] == [(1, 1.0), (2, 0.5)]


def test_gradient_norm_leaves_out_the_scale_of_mixed_precision(monitor, tmp_path):
    scaler = SimpleNamespace(_scale=paddle.to_tensor([8.0]))
    monitor.on_optimizer_begin(ARGS, state(1), None, scaler=scaler, model=model_with_gradient(8.0))
    monitor.on_log(ARGS, state(2), None, logs={"loss": 1.0, "learning_rate": 0.1})
    assert read(tmp_path)["1_train/gradient_norm"] == [(2, pytest.approx(math.sqrt(26)))]


def test_speed_counts_characters_and_the_seconds_of_training_steps_alone(monitor, tmp_path, monkeypatch):
    clock = iter([10.0, 12.0, 100.0, 102.0])
    monkeypatch.setattr("tasks.common.training.monitor.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    for characters in (3, 5):
        inputs = {"token_mask": paddle.to_tensor([[True] * characters + [False]])}
        monitor.on_load_data_end(ARGS, state(), None, inputs=inputs)
        monitor.on_step_end(ARGS, state(), None)
    monitor.on_log(ARGS, state(2), None, logs={"loss": 1.0, "learning_rate": 0.1})
    assert read(tmp_path)["1_train/characters_per_second"] == [(2, 2.0)]


def test_speed_counts_the_seconds_of_every_batch_whose_gradients_are_accumulated(monitor, tmp_path, monkeypatch):
    clock = iter([10.0, 12.0, 12.0, 14.0])
    monkeypatch.setattr("tasks.common.training.monitor.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    for ends in (monitor.on_substep_end, monitor.on_step_end):
        monitor.on_load_data_end(ARGS, state(), None, inputs={"token_mask": paddle.ones([1, 6], dtype="bool")})
        ends(ARGS, state(), None)
    monitor.on_log(ARGS, state(2), None, logs={"loss": 1.0, "learning_rate": 0.1})
    assert read(tmp_path)["1_train/characters_per_second"] == [(2, 3.0)]


def test_evaluation_is_logged_as_dev_and_other_logs_are_not(monitor, tmp_path):
    monitor.on_evaluate(ARGS, state(7), None, metrics={"eval_f1": 0.5, "epoch": 1})
    monitor.on_log(ARGS, state(7), None, logs={"eval_f1": 0.5})
    assert read(tmp_path) == {"dev/f1": [(7, 0.5)]}


def test_only_the_first_process_writes(tmp_path):
    monitor = VisualDLMonitor(tmp_path / "log", {}, ["f1"])
    monitor.on_train_begin(ARGS, state(first_process=False), None)
    monitor.on_evaluate(ARGS, state(1), None, metrics={"eval_f1": 0.5})
    monitor.on_log(ARGS, state(1), None, logs={"loss": 1.0, "learning_rate": 0.1})
    monitor.on_train_end(ARGS, state(1), None)
    assert not (tmp_path / "log").exists()
