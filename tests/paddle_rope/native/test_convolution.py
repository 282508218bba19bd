"""The depthwise convolution against its plain form."""

import os
import subprocess
import sys

import numpy as np
import paddle
import pytest

from paddle_rope.convolution import DepthwiseConvolution
from paddle_rope.native.convolution import native_convolution
from paddle_rope.native.dispatch import plain_forms
from tests.conftest import REPOSITORY
from tests.paddle_rope.native.comparison import assert_same, kept_without_backward, tensor

SEGMENTS = [[3, 3, 3, -1, -1, 8, 0], [5] * 7, [2] * 3 + [1] * 4]
MASK = [[True, True, False, True, True, False, True], [False] * 2 + [True] * 5, [True] * 4 + [False] * 3]


def convolution(hidden_size, size):
    layer = DepthwiseConvolution(hidden_size, size)
    layer.weight.set_value(tensor(size, hidden_size))
    return layer


def without_operators(function):
    def plain():
        with plain_forms():
            return function()

    return plain


@pytest.mark.parametrize("segments", [None, SEGMENTS], ids=["", "packed"])
@pytest.mark.parametrize("mask", [None, MASK], ids=["", "padded"])
@pytest.mark.parametrize("size", [1, 3, 5, 15])
def test_convolution_equals_the_plain_form(size, mask, segments):
    layer, x = convolution(33, size), tensor(3, 7, 33)
    given = [None if values is None else paddle.to_tensor(values) for values in (mask, segments)]
    assert native_convolution(x, layer.weight, *given) is not None
    assert_same(lambda: layer(x, *given), without_operators(lambda: layer(x, *given)), [x, layer.weight])


def test_neighbors_in_memory_of_other_texts_are_not_seen():
    layer, x = convolution(5, 5), tensor(4, 3, 5)
    alone = [layer(x[text : text + 1]).numpy() for text in range(4)]
    np.testing.assert_array_equal(layer(x).numpy(), np.concatenate(alone))


def test_views_are_read_as_they_stand():
    layer, x = convolution(6, 3), tensor(6, 2, 9)

    def transposed():
        return layer(x.transpose([1, 2, 0]))

    assert_same(transposed, without_operators(transposed), [x, layer.weight])


@pytest.mark.parametrize("left_out", ["x", "weight"])
def test_what_needs_no_gradient_gets_none(left_out):
    layer, x = convolution(4, 3), tensor(2, 5, 4)
    tensors = {"x": x, "weight": layer.weight}
    tensors[left_out].stop_gradient = True
    layer(x).sum().backward()
    assert {name for name, one in tensors.items() if one.grad is None} == {left_out}


TWO_THREADS = """
import os
from paddle_rope.machine import import_paddle, prepare_process
prepare_process()
import_paddle()
import numpy as np
import paddle
from paddle_rope.convolution import DepthwiseConvolution
from paddle_rope.native.dispatch import plain_forms
from paddle_rope.native.library import library

assert library() is not None and os.environ["OMP_NUM_THREADS"] == "2"
paddle.seed(0)
layer, x = DepthwiseConvolution(64, 3, center=1.0), paddle.randn([5, 40, 64])
x.stop_gradient = False

def gradients():
    return [one.numpy() for one in paddle.grad((layer(x) ** 2).sum(), [x, layer.weight])]

one, again = gradients(), gradients()
with plain_forms():
    plain = gradients()
for found, repeated, expected in zip(one, again, plain):
    np.testing.assert_array_equal(found, repeated)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
print("as one")
"""


def test_two_threads_add_the_same_and_equal_calls_give_equal_bits():
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", TWO_THREADS]
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.returncode == 0 and found.stdout.strip() == "as one", found.stderr


def test_an_output_that_nobody_takes_is_freed():
    layer, x = convolution(256, 3), tensor(1, 2048, 256)
    assert kept_without_backward(lambda: layer(x)) < 1
