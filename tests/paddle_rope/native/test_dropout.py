"""The masks of native dropout: how much they drop, where, and which random numbers they follow."""

import contextlib
import zlib

import numpy as np
import paddle
import pytest

from paddle_rope.layers import Dropout, LayerNorm, RMSNorm, dropout, residual_norm
from paddle_rope.native.dispatch import plain_forms
from tests.helpers.comparison import assert_same, random_tensor, randomize


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("form, tolerance", [(contextlib.nullcontext, 1e-6), (plain_forms, 1e-3)], ids=["", "plain"])
def test_dropout_keeps_one_minus_p_and_the_mean(p, form, tolerance):
    with form():
        values = dropout(paddle.ones([300, 997]), p).numpy()
    kept, deviation = values != 0, np.sqrt(p * (1 - p))
    np.testing.assert_allclose(values[kept], 1 / (1 - p), rtol=tolerance)
    for axis, count in ((None, values.size), (0, 300), (1, 997)):
        assert np.abs(kept.mean(axis=axis) - (1 - p)).max() < 5.5 * deviation / np.sqrt(count)


def test_places_and_seeds_are_independent():
    one, other = (dropout(paddle.ones([512, 512]), 0.5).numpy() != 0 for _ in range(2))
    pairs = [(one, other), (one, one.T)]
    for lag in (1, 2, 16):
        pairs += [(one[lag:], one[:-lag]), (one[:, lag:], one[:, :-lag])]
    for left, right in pairs:
        assert abs((left == right).mean() - 0.5) < 5 * 0.5 / np.sqrt(left.size / 2)


@pytest.mark.parametrize("p, checksum", [(0.3, 3886426370), (2**-17, 2267181814)])  # high bits, low bits
def test_a_seed_of_numpy_gives_the_same_mask_in_every_version(p, checksum):
    np.random.seed(7)
    mask = dropout(paddle.ones([1000, 1000]), p).numpy() != 0
    assert zlib.crc32(np.packbits(mask).tobytes()) == checksum


@pytest.mark.parametrize("norm", [LayerNorm(7, 1e-6), RMSNorm(1e-6)], ids=["layer norm", "RMS norm"])
def test_dropped_parts_of_a_sum_get_no_gradient_and_the_others_are_scaled(norm):
    randomize(norm)
    inputs = residual, x = [random_tensor(40, 7, dtype="float32") for _ in range(2)]
    np.random.seed(5)  # the seed of the mask is the next number of numpy
    (alone := dropout(x, 0.4)).sum().backward()
    mask = x.grad.clone()
    np.testing.assert_array_equal(mask.numpy() != 0, alone.numpy() != 0)
    x.clear_gradient(set_to_zero=False)
    np.random.seed(5)
    found = residual_norm(norm, residual, x, Dropout(0.4))
    with plain_forms():
        expected = norm(residual + mask * x)
    assert_same(found, expected, [*inputs, *norm.parameters()], atol=2e-5)
    assert (mask.numpy() == 0).any() and (mask.numpy() != 0).any()
