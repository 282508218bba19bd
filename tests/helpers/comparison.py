"""Random tensors, and two ways to compute the same: outputs and gradients."""

import numpy as np
import paddle


def random_tensor(*shape, dtype="float64", scale=1.0):
    """Normal random numbers that take gradients."""
    x = paddle.to_tensor(scale * np.random.standard_normal(shape), dtype=dtype)
    x.stop_gradient = False
    return x


def randomize(layer, dtype="float32", scale=1.0):
    """The layer in a dtype, with random weights and biases."""
    layer.to(dtype=dtype)
    for parameter in layer.parameters():
        parameter.set_value(random_tensor(*parameter.shape, dtype=dtype, scale=scale))
    return layer


def cast(tensors, dtype):
    """Copies in a dtype that take gradients."""
    copies = [x.detach().astype(dtype) for x in tensors]
    for x in copies:
        x.stop_gradient = False
    return copies


def numbers(x):
    """float64 array."""
    return x.astype("float64").numpy() if isinstance(x, paddle.Tensor) else np.asarray(x, dtype=np.float64)


def assert_close(found, expected, atol=1e-10, rtol=0.0, message=""):
    """The same shape and, relative to the largest number or 1, the same numbers."""
    found, expected = numbers(found), numbers(expected)
    assert found.shape == expected.shape, message
    largest = max(1.0, np.abs(expected).max()) if expected.size else 1.0
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol * largest, err_msg=message)


def assert_same(found, expected, inputs, exact=None, atol=1e-10, rtol=0.0):
    """Two tensors are close, and so are their gradients by the ``inputs`` of ``found``, and by ``exact``, those of
    ``expected`` (None: the same)."""
    assert_close(found, expected, atol, rtol, "output")
    towards = paddle.to_tensor(np.random.randint(-3, 4, expected.shape).astype(np.float64))  # exact in any dtype
    one, other = (
        paddle.grad((y.astype("float64") * towards).sum(), list(x), retain_graph=True)
        for y, x in ((found, inputs), (expected, inputs if exact is None else exact))
    )
    for place, (gradient, of_exact) in enumerate(zip(one, other, strict=True)):
        assert gradient.dtype == inputs[place].dtype
        assert_close(gradient, of_exact, atol, rtol, f"gradient of input {place}")


def is_native(output):
    """Whether a native operator computed the output."""
    return output.grad_fn is not None and "_Operator" in output.grad_fn.name()
