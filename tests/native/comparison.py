"""An operator against a plain form: outputs and gradients."""

import numpy as np
import paddle


def tensor(*shape, scale=1.0):
    """Normal random numbers, with a gradient."""
    x = paddle.to_tensor((scale * np.random.standard_normal(shape)).astype("float32"))
    x.stop_gradient = False
    return x


def outputs_and_gradients(function, inputs, towards):
    """[output, gradient of each input] of sum(output * towards), as arrays."""
    output = function()
    (output * towards).sum().backward()
    gradients = [x.grad.numpy() for x in inputs]
    for x in inputs:
        x.clear_gradient(set_to_zero=False)
    return [output.numpy(), *gradients]


def assert_same(native, plain, inputs, tolerance=2e-5):
    """Both functions without arguments give the same, relative to the largest number of each result."""
    towards = paddle.to_tensor(np.random.standard_normal(native().shape).astype("float32"))
    for one, other in zip(*(outputs_and_gradients(function, inputs, towards) for function in (native, plain))):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, np.abs(other).max()))
