"""What is done at each step: the moving average of the weights, checkpoints, progress, VisualDL's figures, and which
weights decay; what is overridden of PaddleNLP's Trainer."""

import io
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from paddlenlp.trainer import Trainer

from paddle_rope.tasks.common.training import callbacks
from paddle_rope.tasks.common.training.callbacks import UPDATE_EVERY, CheckpointTimer, TrainingProgress, WeightAverage
from paddle_rope.tasks.common.training.monitor import VisualDLMonitor
from paddle_rope.tasks.common.training.trainer import CheckpointedTrainer, RecipeTrainer
from tests.helpers.runs import curves

START = np.array([[1.0], [2.0]], dtype=np.float32)


@pytest.fixture
def model():
    """A weight, and a bias that is not learned."""
    layer = paddle.nn.Linear(2, 1)
    layer.weight.set_value(paddle.to_tensor(START))
    layer.bias.stop_gradient = True
    layer.bias.set_value(paddle.full([1], 3.0))
    return layer


def train(average, model, steps):
    """After each step the weight is START + the number of the step."""
    for number in steps:
        model.weight.set_value(paddle.to_tensor(START + number).astype(model.weight.dtype))
        average.on_step_end(None, SimpleNamespace(global_step=number), None)
    return average


def expected(decay, steps, every=UPDATE_EVERY):
    """The documented formula in float64, taken every few steps by the decay to this power."""
    value = START.astype(np.float64) + 1
    for number in range(every, steps + 1, every):
        share = min(decay, (1 + number) / (10 + number)) ** every
        value = share * value + (1 - share) * (START + number)
    return value


@pytest.mark.parametrize("decay, steps", [(0.5, 1), (0.9, 4), (0.998, 5), (0.9, 12), (0.5, 60), (0.998, 60)])
def test_average_follows_the_formula_within_its_block_alone(model, decay, steps):
    average = train(WeightAverage(model, decay), model, range(1, steps + 1))
    with pytest.raises(KeyError), average.applied():
        np.testing.assert_allclose(model.weight.numpy(), expected(decay, steps), rtol=1e-5)
        raise KeyError
    assert (model.weight.numpy() == START + steps).all()
    average.apply()
    np.testing.assert_allclose(model.weight.numpy(), expected(decay, steps), rtol=1e-5)
    assert model.bias.item() == 3.0
    # near the average of every step where weights change slowly
    assert np.abs(expected(0.99, 400) - expected(0.99, 400, every=1)).max() < 0.01 * 400


def test_average_of_half_precision_weights_is_kept_in_float32(model):
    model.to(dtype="bfloat16")
    average = train(WeightAverage(model, 0.9), model, range(1, 6))
    assert {value.dtype for value in average.average.values()} == {paddle.float32}
    with average.applied():
        assert model.weight.dtype == paddle.bfloat16
    assert (model.weight.astype("float32").numpy() == START + 5).all()


def shown(monkeypatch, is_terminal=False, first=0):
    """What a training of four steps writes from the step ``first`` on."""
    state, stream = SimpleNamespace(is_local_process_zero=True, global_step=first, max_steps=4), io.StringIO()
    stream.isatty = lambda: is_terminal
    monkeypatch.setattr("sys.stderr", stream)
    progress = TrainingProgress("training")
    progress.on_train_begin(None, state, None)
    for state.global_step in range(first + 1, 5):
        progress.on_step_end(None, state, None)
        progress.on_log(None, state, None, logs={"loss": 1 / state.global_step})
        progress.on_log(None, state, None, logs={"eval_f1": 0.5})
    progress.close()
    return stream.getvalue()


def test_a_log_file_has_lines_a_terminal_one_bar_and_a_short_training_none(monkeypatch):
    assert shown(monkeypatch) == ""
    monkeypatch.setattr("paddle_rope.tasks.common.training.callbacks.SECONDS_A_LINE", 0)
    lines = shown(monkeypatch).splitlines()
    assert len(lines) == 3 and all(line.startswith("training: step ") and line.endswith(" left") for line in lines)
    assert "step 2 of 4, loss 1, " in lines[1]
    monkeypatch.setattr("paddle_rope.tasks.common.training.callbacks.SHOWN_AFTER", 0)
    for first in (0, 2):
        written = shown(monkeypatch, is_terminal=True, first=first)
        assert written.startswith("\rtraining:") and written.endswith("\n") and written.count("\n") == 1
        assert "4/4" in written.split("\r")[-1] and "loss 0.25" in written.split("\r")[-1]


def test_a_checkpoint_is_due_for_all_processes_when_it_is_for_one(monkeypatch):
    """Two threads in place of processes: the clock of the second is four times as fast, and it alone gets a signal, in
    step 45."""
    local, meet, asked = threading.local(), threading.Barrier(2, timeout=60), {}

    def all_reduce(tensor, op):
        asked[local.rank] = tensor.numpy()
        meet.wait()
        tensor.set_value(np.maximum(asked[0], asked[1]))
        meet.wait()

    def train(rank):
        local.rank, local.ended, local.state = rank, [], SimpleNamespace(global_step=0, max_steps=1000)
        timer, args, saved = CheckpointTimer(60), SimpleNamespace(world_size=2, gradient_accumulation_steps=1), []
        timer.on_train_begin(args, local.state, None)
        while local.state.global_step < 60 and not local.ended:
            local.state.global_step += 1
            control = SimpleNamespace(should_save=False)
            timer.on_step_end(args, local.state, control, train_dataloader=range(1000))
            if control.should_save:
                saved.append(local.state.global_step)
                timer.on_save(args, local.state, control)
        return saved, local.ended

    clock = SimpleNamespace(monotonic=lambda: local.state.global_step * (1, 4)[local.rank])
    monkeypatch.setattr(callbacks.dist, "all_reduce", all_reduce)
    monkeypatch.setattr(callbacks.dist, "barrier", meet.wait)
    monkeypatch.setattr(callbacks, "time", clock)
    monkeypatch.setattr(callbacks, "is_requested", lambda: local.rank == 1 and local.state.global_step >= 45)
    monkeypatch.setattr(callbacks, "end", lambda: local.ended.append(local.state.global_step))
    with ThreadPoolExecutor(2) as threads:
        # after 60 s of the faster clock, 15 steps, at the next step that is asked; the signal of step 45 likewise
        assert list(threads.map(train, (0, 1))) == [([20, 40, 50], [50])] * 2


# ---- VisualDL's figures
ARGS = SimpleNamespace(logging_steps=2)
LOGS = {"loss": 1.0, "learning_rate": 0.1}


def state(step=0, is_first=True):
    return SimpleNamespace(global_step=step, is_world_process_zero=is_first)


@pytest.fixture
def logged(tmp_path):
    """A monitor, and a function that reads the curves that it has written."""
    monitor = VisualDLMonitor(tmp_path / "log", {"a": 1, "b": None}, ["f1"])
    monitor.on_train_begin(ARGS, state(), None)
    yield monitor, lambda: curves(tmp_path / "log")
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
    timer = SimpleNamespace(perf_counter=lambda: next(clock))
    monkeypatch.setattr("paddle_rope.tasks.common.training.monitor.time", timer)
    for characters, event in ((3, first), (5, "on_step_end")):
        inputs = {"token_mask": paddle.to_tensor([[True] * characters + [False]])}
        monitor.on_load_data_end(ARGS, state(), None, inputs=inputs)
        getattr(monitor, event)(ARGS, state(), None)
    monitor.on_log(ARGS, state(2), None, logs=LOGS)
    assert read()["1_train/characters_per_second"] == [(2, 2.0)]


# ---- the trainer
def test_matrices_decay_and_biases_and_norms_do_not():
    model = paddle.nn.Sequential(("dense", paddle.nn.Linear(2, 3)), ("layer_norm", paddle.nn.LayerNorm(3)))
    for weight in model.parameters():
        weight.set_value(paddle.ones_like(weight))
        weight.sum().backward()
        weight.clear_gradient()  # a gradient of zero
    training = SimpleNamespace(max_grad_norm=1.0, weight_decay=0.5)
    RecipeTrainer.create_optimizer(SimpleNamespace(optimizer=None, model=model, args=training), 0.1).step()
    changed = {name for name, weight in model.state_dict().items() if (weight.numpy() != 1).all()}
    assert changed == {"dense.weight"}


def test_four_private_methods_of_paddlenlp_are_overridden_in_one_class():
    private = {name for name in dir(Trainer) if name.startswith("_") and not name.startswith("__")}
    assert private & vars(RecipeTrainer).keys() == set()
    assert private & vars(CheckpointedTrainer).keys() == {
        "_save_checkpoint", "_load_from_checkpoint", "_load_optimizer_and_scheduler", "_load_rng_state",
    }  # fmt: skip
