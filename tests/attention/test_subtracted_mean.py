"""The subtracted mean in place of a denominator, against the double sum."""

import numpy as np
import paddle
import pytest

from paddle_rope import (
    RotaryPositionEmbedding,
    causal_linear_attention,
    linear_attention,
    linear_attention_step,
    reference,
)
from paddle_rope.attention import Identity, OrthogonalRandomFeatures, elu_plus_one
from tests.attention.qkv import SHAPES, ragged_mask, random_qkv
from tests.pairwise import pairwise

NORMALIZER = "subtracted_mean"
SEGMENTS = [[3, 3, 3, -1, -1, 8, 8, 8, 8, 0, 7], [5] * 11]
MAPS = {"identity": (Identity(), paddle.assign), "elu + 1": (elu_plus_one, reference.elu_plus_one)}


def assert_same_with_gradients(attended, expected, variables):
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=1e-11)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    found, exact = (paddle.grad((y * towards).sum(), variables) for y in (attended, expected))
    for name, one, other in zip("qkv", found, exact):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=0, atol=1e-11, err_msg=name)


@pairwise(
    {
        "placement": [None, "qk", "qkvo", "vo"],
        "shape": SHAPES,
        "name": sorted(MAPS),
        "masked": [False, True],
    }
)
def test_outputs_and_gradients_equal_the_double_sum(shape, name, placement, masked):
    batch, _, seq, head_dim, value_dim = shape
    if placement in ("qkvo", "vo") and head_dim != value_dim:
        shape = (*shape[:-1], head_dim)
    qkv = random_qkv(*shape)
    mask = ragged_mask(batch, seq) if masked else None
    rotate = None if placement is None else RotaryPositionEmbedding(head_dim)
    key_mask = None if mask is None else paddle.to_tensor(mask)
    phi, formula = MAPS[name]
    attended = linear_attention(*qkv, rotate, key_mask, phi, NORMALIZER, placement=placement or "qk")
    expected = reference.subtracted_mean_attention(
        *qkv, None if placement is None else range(seq), mask, formula, formula, placement=placement or "qk"
    )
    assert_same_with_gradients(attended, expected, qkv)


def test_random_features_equal_the_double_sum_with_the_gradient_of_their_largest_exponent():
    # the scale exp(-max) of a query stays in the output here: it cancels in a quotient only
    qkv = random_qkv(2, 2, 5, 4, 3)
    phi = OrthogonalRandomFeatures(4)

    def exponents(x):
        return paddle.matmul(x / 4**0.25, phi.projection.astype("float64"), transpose_y=True)

    def formula_q(q):
        return paddle.exp(exponents(q) - exponents(q).max(axis=-1, keepdim=True))

    def formula_k(k):
        return paddle.exp(exponents(k) - k.square().sum(axis=-1, keepdim=True) / 4)

    attended = linear_attention(*qkv, RotaryPositionEmbedding(4), None, phi, NORMALIZER)
    expected = reference.subtracted_mean_attention(*qkv, range(5), None, formula_q, formula_k)
    assert_same_with_gradients(attended, expected, qkv)


@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
@pytest.mark.parametrize("rotated", [False, True], ids=["no position", "rope"])
def test_means_are_taken_within_segments(rotated, masked):
    qkv = random_qkv(2, 2, 11, 4, 3)
    mask = np.ones((2, 11), dtype=bool)
    mask[0, [0, 4, 10]] = mask[1, 7:] = False  # the first of a segment, the last, a whole one
    mask = mask if masked else None
    attended = linear_attention(
        *qkv,
        RotaryPositionEmbedding(4) if rotated else None,
        None if mask is None else paddle.to_tensor(mask),
        Identity(),
        NORMALIZER,
        paddle.to_tensor(SEGMENTS),
    )
    positions = range(11) if rotated else None
    expected = reference.subtracted_mean_attention(
        *qkv, positions, mask, paddle.assign, paddle.assign, segment_ids=SEGMENTS
    )
    assert_same_with_gradients(attended, expected, qkv)
    if masked:
        assert (attended[0, :, 10].numpy() == 0).all(), "a segment without a real key"


def test_weights_sum_to_one_and_may_be_negative():
    q, k, _ = random_qkv(2, 2, 40, 8, 1)
    v = paddle.eye(40, dtype="float64").expand([2, 2, 40, 40])  # the outputs are the weights
    mask = ragged_mask(2, 40)
    weights = linear_attention(
        3 * q, 3 * k, v, RotaryPositionEmbedding(8), paddle.to_tensor(mask), Identity(), NORMALIZER
    ).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert (weights.transpose([0, 3, 1, 2])[~mask] == 0).all()
    assert weights.min() < 0


def test_queries_that_differ_by_a_factor_attend_differently():
    # unlike with a denominator, which cancels the factor (the injectivity of arXiv 2412.06590)
    q, k, v = random_qkv(1, 1, 9, 4, 3)
    once, twice = (linear_attention(x, k, v, None, None, Identity(), NORMALIZER) for x in (q, 2 * q))
    mean = v.mean(axis=2, keepdim=True)
    assert float((twice - once).abs().max()) > 1e-2
    np.testing.assert_allclose((twice - mean).numpy(), 2 * (once - mean).numpy(), rtol=0, atol=1e-12)


def test_a_text_repeated_gives_the_same_outputs_so_that_no_length_is_too_long():
    q, k, v = random_qkv(1, 2, 5, 4, 3, dtype="float32")
    short = linear_attention(q, k, v, None, None, Identity(), NORMALIZER)
    tiled = [x.tile([1, 1, 20_000, 1]) for x in (q, k, v)]
    long = linear_attention(*tiled, None, None, Identity(), NORMALIZER)
    np.testing.assert_allclose(long[:, :, -5:].numpy(), short.numpy(), rtol=0, atol=3e-3)


def test_padding_alone_gives_zero():
    q, k, v = random_qkv(2, 1, 3, 4, 2, dtype="float32")
    mask = paddle.to_tensor([[True, True, True], [False, False, False]])
    for phi in (elu_plus_one, Identity(), OrthogonalRandomFeatures(4)):
        attended = linear_attention(q, k, v, None, mask, phi, NORMALIZER)
        for x in (attended, *paddle.grad(attended.sum(), [q, k, v])):
            assert np.isfinite(x.numpy()).all()
            assert (x[1].numpy() == 0).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_beyond_half_precision_are_right(dtype):
    q = paddle.full([1, 1, 5000, 8], 3.0).astype(dtype)
    v = paddle.full([1, 1, 5000, 3], 100.0).astype(dtype)
    attended = linear_attention(q, q, v, feature_map=Identity(), normalizer=NORMALIZER)
    assert attended.dtype == q.dtype
    np.testing.assert_allclose(attended.astype("float32").numpy(), 100, rtol=1e-2)


def test_it_is_for_bidirectional_attention_alone_and_signed_features_are_for_it():
    q, k, v = random_qkv(1, 1, 1, 4, 2)
    with pytest.raises(ValueError, match="it is not causal"):
        causal_linear_attention(q, k, v, normalizer=NORMALIZER)
    with pytest.raises(ValueError, match="it is not causal"):
        linear_attention_step(None, q, k, v, normalizer=NORMALIZER)
    for normalizer in ("unrotated", "rotated"):
        with pytest.raises(ValueError, match="Identity has products of either sign"):
            linear_attention(q, k, v, feature_map=Identity(), normalizer=normalizer)
