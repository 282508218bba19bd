"""norm(residual + dropout(x)), and dropout, against their plain forms."""

import zlib

import numpy as np
import paddle
import pytest

from paddle_rope.layers import Dropout, LayerNorm, RMSNorm, residual_norm
from paddle_rope.native.dispatch import is_enabled, plain_forms
from paddle_rope.native.residual_norm import native_dropout, native_residual_norm
from tests.paddle_rope.native.comparison import assert_same, tensor


@pytest.fixture(params=[LayerNorm, RMSNorm], ids=["layer norm", "RMS norm"])
def norm(request):
    """A norm of 7 features whose weights are not those of the start."""
    made = request.param(7, 1e-6) if request.param is LayerNorm else request.param(1e-6)
    for parameter in made.parameters():
        parameter.set_value(tensor(*parameter.shape))
    return made


@pytest.mark.parametrize("leading", [(1,), (3, 5)], ids=str)
def test_norm_of_the_sum_equals_the_plain_form(norm, leading):
    residual, x, dropout = tensor(*leading, 7), tensor(*leading, 7), Dropout(0.0)
    assert is_enabled(x) and native_residual_norm(None, x, None, None, 1e-6) is not None

    def plain():
        with plain_forms():
            return residual_norm(norm, residual, x, dropout)

    inputs = [residual, x, *norm.parameters()]
    assert_same(lambda: residual_norm(norm, residual, x, dropout), plain, inputs)
    with plain_forms():
        expected = norm(x).numpy()
    np.testing.assert_allclose(norm(x).numpy(), expected, rtol=0, atol=1e-5)


def test_dropped_parts_of_x_get_no_gradient_and_the_others_are_scaled(norm):
    residual, x = tensor(40, 7), tensor(40, 7)
    np.random.seed(5)
    mask = native_dropout(paddle.ones([40, 7]), 0.4)

    def native():
        np.random.seed(5)  # the seed of the mask is the next number of numpy
        return residual_norm(norm, residual, x, Dropout(0.4))

    def plain():
        with plain_forms():
            return norm(residual + mask * x)

    assert_same(native, plain, [residual, x, *norm.parameters()])
    assert (mask.numpy() == 0).any() and (mask.numpy() != 0).any()


def test_what_needs_no_gradient_gets_none(norm):
    residual, x = tensor(4, 7), tensor(4, 7)
    residual.stop_gradient = True
    for parameter in norm.parameters():
        parameter.stop_gradient = True
    residual_norm(norm, residual, x, Dropout(0.3)).sum().backward()
    assert residual.grad is None and x.grad.shape == [4, 7]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_one_minus_p_and_the_mean(p):
    values = native_dropout(paddle.ones([300, 997]), p).numpy()
    kept, deviation = values != 0, np.sqrt(p * (1 - p) / values.size)
    assert abs(kept.mean() - (1 - p)) < 5 * deviation
    np.testing.assert_allclose(values[kept], 1 / (1 - p), rtol=1e-6)
    for axis, count in ((0, 300), (1, 997)):
        assert abs(kept.mean(axis=axis) - (1 - p)).max() < 5.5 * np.sqrt(p * (1 - p) / count)


def test_places_and_seeds_of_dropout_are_independent():
    one, other = (native_dropout(paddle.ones([512, 512]), 0.5).numpy() != 0 for _ in range(2))
    pairs = [(one, other), (one[1:], one[:-1]), (one[:, 1:], one[:, :-1]), (one[:, 2:], one[:, :-2])]
    pairs += [(one[16:], one[:-16]), (one[:, 16:], one[:, :-16]), (one, one.T)]
    for left, right in pairs:
        assert abs((left == right).mean() - 0.5) < 5 * 0.5 / np.sqrt(left.size / 2)


def test_dropout_follows_the_seed_of_numpy():
    x, masks = paddle.ones([20, 30]), []
    for seed in (1, 1, 2):
        np.random.seed(seed)
        masks.append(native_dropout(x, 0.5).numpy())
    np.testing.assert_array_equal(masks[0], masks[1])
    assert (masks[0] != masks[2]).any()


@pytest.mark.parametrize("p,checksum", [(0.3, 3886426370), (2**-17, 2267181814)])  # high bits, low bits
def test_a_seed_gives_the_same_mask_in_every_version(p, checksum):
    np.random.seed(7)
    kept = native_dropout(paddle.ones([1000, 1000]), p).numpy() != 0
    assert zlib.crc32(np.packbits(kept).tobytes()) == checksum


def test_dropout_has_the_same_mask_in_backward():
    x = tensor(6, 50)
    y = native_dropout(x, 0.5)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.where(y.numpy() != 0, 2.0, 0.0))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_dtypes_are_left_to_the_plain_forms(dtype):
    assert not is_enabled(paddle.ones([3], dtype))
