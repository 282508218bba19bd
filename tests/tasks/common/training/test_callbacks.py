"""The moving average of a model's weights, when checkpoints are due, and how far training is."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from tasks.common.training import callbacks
from tasks.common.training.callbacks import UPDATE_EVERY, CheckpointTimer, TrainingProgress, WeightAverage

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


@pytest.mark.parametrize("first", [0, 5, 8])  # 0: before the first step the average is the model
def test_average_goes_on_from_a_file_as_if_there_had_been_no_break(model, tmp_path, first):
    whole = train(WeightAverage(model, 0.9), model, range(1, 18))
    model.weight.set_value(paddle.to_tensor(START + 1))
    again, file = WeightAverage(model, 0.9), tmp_path / "average.safetensors"
    train(WeightAverage(model, 0.9), model, range(1, first + 1)).save(file)
    train(again, model, range(first + 1, first + 4))  # what it has seen before is replaced
    again.load(file)
    train(again, model, range(first + 1, 18))
    assert (again.average["weight"].numpy() == whole.average["weight"].numpy()).all()


def test_average_of_half_precision_weights_is_kept_in_float32(model):
    model.to(dtype="bfloat16")
    average = train(WeightAverage(model, 0.9), model, range(1, 6))
    assert {value.dtype for value in average.average.values()} == {paddle.float32}
    with average.applied():
        assert model.weight.dtype == paddle.bfloat16
    assert (model.weight.astype("float32").numpy() == START + 5).all()


def shown(seconds, is_terminal=False, first=0):
    """What a training of four steps writes from the step ``first`` on."""
    state, stream = SimpleNamespace(is_local_process_zero=True, global_step=first, max_steps=4), io.StringIO()
    stream.isatty = lambda: is_terminal
    progress = TrainingProgress("training", seconds, stream)
    progress.on_train_begin(None, state, None)
    for state.global_step in range(first + 1, 5):
        progress.on_step_end(None, state, None)
        progress.on_log(None, state, None, logs={"loss": 1 / state.global_step})
        progress.on_log(None, state, None, logs={"eval_f1": 0.5})
    progress.on_train_end(None, state, None)
    return stream.getvalue()


def test_a_log_file_has_lines_a_terminal_one_bar_and_a_short_training_none(monkeypatch):
    lines = shown(0.0).splitlines()
    assert len(lines) == 3 and all(line.startswith("training: step ") and line.endswith(" left") for line in lines)
    assert "step 2 of 4, loss 1, " in lines[1] and shown(3600.0) == ""
    monkeypatch.setattr("tasks.common.training.callbacks.SHOWN_AFTER", 0)
    for first in (0, 2):
        written = shown(0.0, is_terminal=True, first=first)
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
