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
    return layer


def step(average, model, number):
    """After step ``number`` the weight is START + number."""
    model.weight.set_value(paddle.to_tensor(START + number))
    average.on_step_end(None, SimpleNamespace(global_step=number), None)


def trained(model, decay, steps):
    average = WeightAverage(model, decay)
    for number in range(1, steps + 1):
        step(average, model, number)
    return average


def by_hand(decay, steps):
    """The documented formula, taken every UPDATE_EVERY steps by the decay to this power."""
    value = START.astype(np.float64) + 1
    for number in range(UPDATE_EVERY, steps + 1, UPDATE_EVERY):
        share = min(decay, (1 + number) / (10 + number)) ** UPDATE_EVERY
        value = share * value + (1 - share) * (START + number)
    return value


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.998])
@pytest.mark.parametrize("steps", [1, 4, 5, 12, 60])
def test_average_is_that_of_the_formula(model, decay, steps):
    average = trained(model, decay, steps)
    average.apply()
    np.testing.assert_allclose(model.weight.numpy(), by_hand(decay, steps), rtol=1e-5)


def test_weights_that_do_not_change_are_their_average(model):
    average = WeightAverage(model, 0.998)
    for number in range(1, 31):
        average.on_step_end(None, SimpleNamespace(global_step=number), None)
    average.apply()
    np.testing.assert_allclose(model.weight.numpy(), START, rtol=1e-6)


def test_average_is_near_that_of_every_step_where_weights_change_slowly(model):
    """What taking it every few steps leaves out is small against the way that the weights have come."""
    average = trained(model, 0.99, 400)
    value = START.astype(np.float64) + 1
    for number in range(1, 401):
        decay = min(0.99, (1 + number) / (10 + number))
        value = decay * value + (1 - decay) * (START + number)
    average.apply()
    assert np.abs(model.weight.numpy() - value).max() < 0.01 * 400


def test_applied_is_in_force_in_its_block_alone(model):
    average = trained(model, 0.9, 10)
    with average.applied():
        np.testing.assert_allclose(model.weight.numpy(), by_hand(0.9, 10), rtol=1e-5)
    assert (model.weight.numpy() == START + 10).all()


def test_applied_gives_the_weights_back_after_an_exception(model):
    average = trained(model, 0.9, 10)
    with pytest.raises(KeyError), average.applied():
        raise KeyError
    assert (model.weight.numpy() == START + 10).all()


def test_before_the_first_step_the_average_is_the_model(model, tmp_path):
    average = WeightAverage(model, 0.9)
    with average.applied():
        assert (model.weight.numpy() == START).all()
    average.save(tmp_path / "average.safetensors")
    model.weight.set_value(paddle.zeros([2, 1]))
    average.load(tmp_path / "average.safetensors")
    average.apply()
    assert (model.weight.numpy() == START).all()


def test_average_goes_on_from_a_file_as_if_there_had_been_no_break(model, tmp_path):
    whole = trained(model, 0.9, 17)
    first = trained(model, 0.9, 8)
    first.save(tmp_path / "average.safetensors")
    again = WeightAverage(model, 0.9)
    again.load(tmp_path / "average.safetensors")
    for number in range(9, 18):
        step(again, model, number)
    again.apply()
    found = model.weight.numpy()
    whole.apply()
    assert (found == model.weight.numpy()).all()


def test_saving_does_not_tie_the_file_to_later_steps(model, tmp_path):
    average = trained(model, 0.9, 5)
    average.save(tmp_path / "average.safetensors")
    for number in range(6, 11):
        step(average, model, number)
    average.load(tmp_path / "average.safetensors")
    average.apply()
    np.testing.assert_allclose(model.weight.numpy(), by_hand(0.9, 5), rtol=1e-5)


def test_weights_that_are_not_learned_are_left_alone(model):
    average = trained(model, 0.9, 5)
    model.bias.set_value(paddle.full([1], 3.0))
    average.apply()
    assert model.bias.item() == 3.0


def test_average_of_half_precision_weights_is_kept_in_float32():
    layer = paddle.nn.Linear(2, 1)
    layer.to(dtype="bfloat16")
    start = layer.weight.astype("float32").numpy()
    average = WeightAverage(layer, 0.9)
    for number in range(1, 6):
        average.on_step_end(None, SimpleNamespace(global_step=number), None)
    assert {value.dtype for value in average.average.values()} == {paddle.float32}
    with average.applied():
        assert layer.weight.dtype == paddle.bfloat16
    assert (layer.weight.astype("float32").numpy() == start).all()
