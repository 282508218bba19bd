"""phi = elu + 1: positive in every precision."""

import numpy as np
import paddle
import pytest

from paddle_rope.attention import elu_plus_one, feature_maps


class RoundedTo:
    """A module whose functions round their results to ``dtype``: what kernels of that dtype do, which CPU lacks."""

    def __init__(self, module, dtype):
        self.module = module
        self.dtype = dtype

    def __getattr__(self, name):
        function = getattr(self.module, name)

        def rounded(*args, **kwargs):
            return function(*args, **kwargs).astype(self.dtype).astype("float32")

        return rounded


def test_equals_elu_plus_one_in_float64():
    x = np.concatenate([np.linspace(-30, 30, 601), [-1e-9, 0.0, 1e-9, 1e4]]).reshape(5, 11, 11)
    expected = np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    np.testing.assert_allclose(elu_plus_one(paddle.to_tensor(x)).numpy(), expected, rtol=1e-14, atol=0)
    naive = paddle.nn.functional.elu(paddle.to_tensor(x)) + 1
    np.testing.assert_allclose(naive.numpy(), expected, rtol=0, atol=1e-15 * 1e4)


def test_the_slope_is_one_from_zero_on_and_the_value_below():
    x = paddle.to_tensor([-20.0, -8.0, -0.5, -1e-6, -0.0, 0.0, 1e-6, 0.5, 8.0, 1e4], dtype="float64")
    x.stop_gradient = False
    (slope,) = paddle.grad(elu_plus_one(x).sum(), x)
    np.testing.assert_allclose(slope.numpy(), np.exp(np.minimum(x.numpy(), 0)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_at_zero_is_exactly_one(dtype):
    x = paddle.zeros([3], dtype=dtype)
    x.stop_gradient = False
    (slope,) = paddle.grad(elu_plus_one(x).sum(), x)
    assert (slope.numpy() == 1).all()


def test_the_slope_at_zero_is_one_whatever_that_of_clip_at_its_bound(monkeypatch):
    # it is 1 in paddle 3.x and 0 in 2.6.2
    monkeypatch.setattr(paddle, "clip", lambda x, max: paddle.where(x < max, x, paddle.full_like(x, max)))
    x = paddle.zeros([3])
    x.stop_gradient = False
    assert paddle.grad(elu_plus_one(x).sum(), x)[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [-80.0, -20.0, -8.0])
def test_positive_far_below_zero(value, dtype):
    result = elu_plus_one(paddle.to_tensor([value], dtype=dtype))
    assert str(result.dtype).endswith(dtype)
    np.testing.assert_allclose(result.numpy(), np.exp(value), rtol=1e-5)


@pytest.mark.parametrize("value", [-20.0, -8.0, -3.0, 0.0, 2.0])
def test_positive_and_right_when_every_step_rounds_to_bfloat16(value, monkeypatch):
    rounded_paddle, rounded_functional = (RoundedTo(module, "bfloat16") for module in (paddle, paddle.nn.functional))
    naive = rounded_functional.elu(paddle.to_tensor([-20.0])) + 1
    assert naive.item() == 0, "elu(x) + 1 loses everything in bfloat16, or else this test shows nothing"
    monkeypatch.setattr(feature_maps, "paddle", rounded_paddle)
    monkeypatch.setattr(feature_maps, "F", rounded_functional)
    result = elu_plus_one(paddle.to_tensor([value])).item()
    assert result > 0
    assert abs(result - (value + 1 if value > 0 else np.exp(value))) <= 0.02 * result
