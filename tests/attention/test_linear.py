"""Linear attention with RoPE in the numerator only, against the double sum."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, linear_attention, reference
from paddle_rope.attention import elu_plus_one
from tests.attention.qkv import SHAPES, ragged_mask, random_qkv
from tests.pairwise import pairwise


def assert_equals_reference(exact, dtype, tolerance, rotate, mask, relative=0):
    seq = exact[0].shape[2]
    inputs = [x.detach().astype(dtype) for x in exact]
    for x in inputs:
        x.stop_gradient = False
    attended = linear_attention(*inputs, rotate, None if mask is None else paddle.to_tensor(mask))
    expected = reference.linear_attention(*exact, None if rotate is None else range(seq), mask)
    assert attended.dtype == inputs[0].dtype
    tolerances = {"rtol": relative, "atol": tolerance}
    np.testing.assert_allclose(attended.astype("float64").numpy(), expected.numpy(), **tolerances)
    towards = paddle.to_tensor(np.random.randint(-3, 4, expected.shape).astype(np.float64))  # exact in any dtype
    gradients = paddle.grad((attended.astype("float64") * towards).sum(), inputs)
    expected_gradients = paddle.grad((expected * towards).sum(), exact)
    for name, gradient, expected_gradient in zip("qkv", gradients, expected_gradients):
        gradient = gradient.astype("float64").numpy()
        np.testing.assert_allclose(gradient, expected_gradient.numpy(), **tolerances, err_msg=name)


@pairwise(
    {
        "shape": SHAPES,
        "rotated": [False, True],
        "masked": [False, True],
        "dtype, tolerance": [("float32", 1e-5), ("float64", 1e-10)],
    }
)
def test_outputs_and_gradients_equal_the_double_sum(shape, rotated, masked, dtype, tolerance):
    rotate = RotaryPositionEmbedding(shape[3]) if rotated else None
    mask = ragged_mask(shape[0], shape[2]) if masked else None
    assert_equals_reference(random_qkv(*shape), dtype, tolerance, rotate, mask)


@pytest.mark.parametrize("dtype, unit", [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_half_precision_outputs_and_gradients_equal_the_double_sum(dtype, unit):
    # the inputs are numbers of the half precision: what is lost is the rounding of outputs and gradients
    exact = [x.detach().astype(dtype).astype("float64") for x in random_qkv(2, 2, 7, 4, 3)]
    for x in exact:
        x.stop_gradient = False
    assert_equals_reference(exact, dtype, 1e-5, RotaryPositionEmbedding(4), ragged_mask(2, 7), relative=unit)


@pytest.mark.parametrize("dtype, tolerance", [("float16", 2e-3), ("bfloat16", 1.6e-2)])
def test_sums_beyond_half_precision_are_right(dtype, tolerance):
    # the denominator is 5000 * 8 * 16 = 640,000: float16 has no such number, bfloat16 stops counting at 256
    q = paddle.full([1, 1, 5000, 8], 3.0).astype(dtype)
    v = paddle.full([1, 1, 5000, 3], 100.0).astype(dtype)
    attended = linear_attention(q, q, v)
    assert attended.dtype == q.dtype
    np.testing.assert_allclose(attended.astype("float32").numpy(), 100.0, rtol=tolerance)


def test_sums_are_taken_outside_auto_cast():
    # On CPU auto_cast does nothing, so its state is set by hand and read where the sums are taken.
    tracer = paddle.base.framework._dygraph_tracer()
    outside, levels = tracer._amp_level, []

    def phi(x):
        levels.append(tracer._amp_level)
        return elu_plus_one(x)

    q, k, v = random_qkv(1, 1, 3, 4, 2, dtype="float32")
    try:
        tracer._amp_level = paddle.base.core.AmpLevel.O1
        linear_attention(q, k, v, feature_map=phi)
        after = tracer._amp_level
    finally:
        tracer._amp_level = outside
    assert levels == [paddle.base.core.AmpLevel.O0] * 2
    assert after == paddle.base.core.AmpLevel.O1


def test_the_denominator_is_positive_and_unrotated():
    # with phi = (1, 0) the rotated products are cos(i - j), of either sign; the unrotated ones are 1 and sum to seq
    seq = 23

    def phi(x):
        return paddle.to_tensor([1.0, 0.0], dtype=x.dtype).expand(x.shape)

    q, k, v = random_qkv(1, 1, seq, 2, 2)
    attended = linear_attention(q, k, v, RotaryPositionEmbedding(2), feature_map=phi)
    i = np.arange(seq)
    expected = np.cos(i[:, np.newaxis] - i) @ v.numpy()[0, 0] / seq
    np.testing.assert_allclose(attended.numpy()[0, 0], expected, rtol=0, atol=1e-12)


def test_without_rotation_outputs_are_averages_of_the_values():
    q, k, v = random_qkv(2, 2, 11, 4, 5)
    attended = linear_attention(6 * q, 6 * k, v)
    assert bool((attended <= v.max(axis=2, keepdim=True)).all())
    assert bool((attended >= v.min(axis=2, keepdim=True)).all())
    ones = linear_attention(6 * q, 6 * k, paddle.ones_like(v))
    np.testing.assert_allclose(ones.numpy(), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_text_of_padding_alone_gives_zero(dtype):
    q, k, v = random_qkv(2, 1, 3, 4, 2, dtype=dtype)
    mask = paddle.to_tensor([[True, True, True], [False, False, False]])
    attended = linear_attention(q, k, v, RotaryPositionEmbedding(4), mask)
    gradients = paddle.grad(attended.astype("float32").sum(), [q, k, v])
    for x in (attended, *gradients):
        x = x.astype("float32").numpy()
        assert np.isfinite(x).all()
        assert (x[1] == 0).all()
        assert (x[0] != 0).any()


def test_outputs_see_relative_positions_only():
    rotary = RotaryPositionEmbedding(8)
    q, k, v = random_qkv(1, 2, 6, 8, 4)
    shifted = linear_attention(q, k, v, lambda x: rotary(x, offset=321))
    np.testing.assert_allclose(shifted.numpy(), linear_attention(q, k, v, rotary).numpy(), rtol=0, atol=1e-10)
    assert float((shifted - linear_attention(q, k, v)).abs().max()) > 1e-2


def test_no_square_of_the_length_is_ever_held():
    # weights [seq, seq] of this length would be 160 GB
    seq = 200_000
    q, k, v = random_qkv(1, 1, seq, 2, 1, dtype="float32")
    attended = linear_attention(q, k, v, RotaryPositionEmbedding(2))
    gradients = paddle.grad(attended.sum(), [q, k, v])
    assert attended.shape == [1, 1, seq, 1]
    assert all(bool(paddle.isfinite(x).all()) for x in (attended, *gradients))
    without = linear_attention(q, k, v).numpy().ravel()
    phi_q, phi_k = (elu_plus_one(x.detach()).astype("float64").numpy()[0, 0] for x in (q, k))
    expected = phi_q @ (phi_k.T @ v.astype("float64").numpy()[0, 0]) / (phi_q @ phi_k.sum(axis=0))[:, np.newaxis]
    np.testing.assert_allclose(without, expected.ravel(), rtol=0, atol=1e-5)
