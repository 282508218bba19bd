"""An operator against a plain form: outputs and gradients."""

import contextlib
import os

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


def kept_without_backward(function, count=8):
    """MB that stay with the process for each call whose output nobody takes."""

    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    for _ in range(4):
        function()
    before = resident()
    for _ in range(count):
        function()
    return (resident() - before) / count


@contextlib.contextmanager
def views():
    """In this context transposed tensors and slices are views, as by Paddle's default."""
    before = paddle.get_flags("FLAGS_use_stride_kernel")
    paddle.set_flags({"FLAGS_use_stride_kernel": True})
    try:
        yield
    finally:
        paddle.set_flags(before)


def is_native(output):
    """Whether the output is that of a native operator."""
    return "_Operator" in output.grad_fn.name()
