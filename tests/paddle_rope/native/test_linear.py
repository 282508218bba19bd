"""activation(x W + b) against its plain form."""

import numpy as np
import paddle
import pytest
from scipy.special import erf

from paddle_rope.layers import Linear
from paddle_rope.native.dispatch import plain_forms
from paddle_rope.native.linear import ACTIVATIONS, native_linear
from tests.paddle_rope.native.comparison import assert_same, kept_without_backward, tensor


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_linear_equals_the_plain_form(activation, bias):
    layer, x = Linear(6, 19, None if bias else False, activation), tensor(2, 5, 6, scale=2)
    for parameter in layer.parameters():
        parameter.set_value(tensor(*parameter.shape))

    def plain():
        with plain_forms():
            return layer(x)

    assert native_linear(x, layer.weight, layer.bias, activation) is not None
    assert_same(lambda: layer(x), plain, [x, *layer.parameters()])
    with paddle.no_grad():
        np.testing.assert_allclose(layer(x).numpy(), plain().numpy(), rtol=0, atol=1e-5)


def test_gelu_is_exact_over_its_whole_range():
    x = np.concatenate([np.linspace(-12, 12, 4801), [-100.0, -1e4, 100.0, 1e4]]).astype("float32")
    rows, one = paddle.to_tensor(x).reshape([-1, 1]), paddle.ones([1, 1])
    rows.stop_gradient = False
    y = native_linear(rows, one, None, "gelu")
    y.sum().backward()
    wide = x.astype("float64")
    distribution = (1 + erf(wide / np.sqrt(2))) / 2
    np.testing.assert_allclose(y.numpy()[:, 0], wide * distribution, rtol=2e-6, atol=4e-7)
    density = np.exp(-(wide**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(rows.grad.numpy()[:, 0], distribution + wide * density, rtol=2e-6, atol=4e-7)


def test_outputs_that_nobody_takes_are_freed():
    layer, x = Linear(6, 64, activation="gelu"), tensor(16384, 6)  # outputs of 4 MB
    assert kept_without_backward(lambda: layer(x)) < 1


def test_a_bias_that_needs_no_gradient_gets_none():
    layer, x = Linear(3, 4, activation="relu"), tensor(2, 3)
    layer.bias.stop_gradient = True
    layer(x).sum().backward()
    assert layer.bias.grad is None and layer.weight.grad.shape == [3, 4]
