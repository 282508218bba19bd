"""The moving average of a model's weights."""

from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from tasks.common.training.weight_average import UPDATE_EVERY, WeightAverage

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
        model.weight.set_value(paddle.to_tensor(START + number))
        average.on_step_end(None, SimpleNamespace(global_step=number), None)
    return average


def expected(decay, steps, every=UPDATE_EVERY):
    """The documented formula in float64, taken every few steps by the decay to this power."""
    value = START.astype(np.float64) + 1
    for number in range(every, steps + 1, every):
        share = min(decay, (1 + number) / (10 + number)) ** every
        value = share * value + (1 - share) * (START + number)
    return value


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.998])
@pytest.mark.parametrize("steps", [1, 4, 5, 12, 60])
def test_average_is_that_of_the_formula_within_its_block_alone(model, decay, steps):
    average = train(WeightAverage(model, decay), model, range(1, steps + 1))
    with pytest.raises(KeyError), average.applied():
        np.testing.assert_allclose(model.weight.numpy(), expected(decay, steps), rtol=1e-5)
        raise KeyError
    assert (model.weight.numpy() == START + steps).all() and model.bias.item() == 3.0
    average.apply()
    np.testing.assert_allclose(model.weight.numpy(), expected(decay, steps), rtol=1e-5)
    assert model.bias.item() == 3.0


def test_the_formula_is_near_the_average_of_every_step_where_weights_change_slowly():
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
    found = again.average["weight"].numpy()
    assert (found == whole.average["weight"].numpy()).all()


def test_average_of_half_precision_weights_is_kept_in_float32(model):
    model.to(dtype="bfloat16")
    average = train(WeightAverage(model, 0.9), model, ())
    for number in range(1, 6):
        average.on_step_end(None, SimpleNamespace(global_step=number), None)
    assert {value.dtype for value in average.average.values()} == {paddle.float32}
    with average.applied():
        assert model.weight.dtype == paddle.bfloat16
    assert (model.weight.astype("float32").numpy() == START).all()
