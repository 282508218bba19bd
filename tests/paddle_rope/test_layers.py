"""Layers in both forms against Paddle's layers and the equations; what dropout drops, and by which random numbers."""

import contextlib
import zlib

import numpy as np
import paddle
import pytest

from paddle_rope.layers import Dropout, LayerNorm, RMSNorm, residual_norm
from paddle_rope.native.dispatch import plain_forms
from tests.helpers.comparison import assert_close, assert_same, cast, random_tensor, randomize


@pytest.fixture(params=[plain_forms, contextlib.nullcontext], ids=["plain", "native"], autouse=True)
def is_plain(request, native_operators):
    """Whether the plain forms compute."""
    if request.param is contextlib.nullcontext and not native_operators:
        pytest.skip("no C++ compiler here, so no native operators")
    with request.param():
        yield request.param is plain_forms


# dropout
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_one_minus_p_and_the_mean_independent_of_place_and_seed(p, is_plain):
    one, other = (Dropout(p)(paddle.ones([512, 512])).numpy() for _ in range(2))
    np.testing.assert_allclose(one[one != 0], 1 / (1 - p), rtol=1e-3 if is_plain else 1e-6)
    for axis, count in ((None, one.size), (0, 512), (1, 512)):
        assert np.abs((one != 0).mean(axis=axis) - (1 - p)).max() < 5.5 * np.sqrt(p * (1 - p) / count)
    pairs = [(one, other), (one, one.T)]
    for lag in (1, 2, 16):
        pairs += [(one[lag:], one[:-lag]), (one[:, lag:], one[:, :-lag])]
    equal = p**2 + (1 - p) ** 2
    for left, right in pairs:
        assert abs(((left != 0) == (right != 0)).mean() - equal) < 10 * np.sqrt(equal * (1 - equal) / left.size)


@pytest.mark.parametrize("p, native, plain", [(0.3, 3831940526, 640587482), (2**-17, 142072338, 542024922)])
def test_a_seed_of_paddle_gives_the_same_mask_in_every_version(p, native, plain, is_plain):
    paddle.seed(7)
    mask = Dropout(p)(paddle.ones([1000, 1000])).numpy() != 0
    assert zlib.crc32(np.packbits(mask).tobytes()) == (plain if is_plain else native)


@pytest.mark.parametrize("norm", [LayerNorm(7, 1e-6), RMSNorm(1e-6)], ids=["layer norm", "RMS norm"])
def test_dropped_parts_of_a_sum_get_no_gradient_and_the_others_are_scaled(norm):
    randomize(norm)
    inputs = residual, x = [random_tensor(40, 7, dtype="float32") for _ in range(2)]
    paddle.seed(5)
    (mask,) = paddle.grad((alone := Dropout(0.4)(x)).sum(), [x])
    np.testing.assert_array_equal((mask * x).numpy(), alone.numpy())
    assert len(np.unique(mask.numpy())) == 2
    paddle.seed(5)
    found = residual_norm(norm, residual, x, Dropout(0.4))
    with plain_forms():
        expected = norm(residual + mask * x)
    assert_same(found, expected, [*inputs, *norm.parameters()], atol=2e-5)


def test_dropout_of_nothing_of_all_and_in_evaluation():
    x, evaluated = random_tensor(41, 5, dtype="float32"), Dropout(0.7)
    evaluated.eval()
    for layer, factor in ((evaluated, 1), (Dropout(0.0), 1), (Dropout(1.0), 0)):
        np.testing.assert_array_equal(layer(x).numpy(), factor * x.numpy())


# norms
def test_the_gradient_of_a_layer_norm_has_its_weights_also_where_they_are_frozen():
    norm, x = randomize(LayerNorm(7, 1e-6)), random_tensor(3, 7, dtype="float32")
    expected, *_ = paddle.grad((norm(x) ** 2).sum(), [x, *norm.parameters()])
    for weight in norm.parameters():
        weight.stop_gradient = True
    (found,) = paddle.grad((norm(x) ** 2).sum(), [x])
    assert_close(found, expected, 1e-5)


@pytest.mark.equation("5.2")
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
def test_rms_norm_is_the_quotient_by_the_root_mean_square(dtype, tolerance):
    x = random_tensor(3, 1, 7, dtype=dtype, scale=5)
    exact = cast([x], "float64")
    expected = exact[0] / paddle.sqrt(exact[0].square().mean(axis=-1, keepdim=True))
    assert_same(RMSNorm()(x), expected, [x], exact, tolerance)
    half = RMSNorm()(paddle.to_tensor([[300.0, -400.0], [0.0, 0.0]]).astype("float16"))  # squares beyond float16
    assert half.dtype == paddle.float16
    assert_close(half, [[0.8485, -1.1314], [0, 0]], 1e-3)
