"""Bidirectional linear attention with a decay on both sides, against the double sum."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, causal_linear_attention, linear_attention, reference
from paddle_rope.attention import OnePlusCosine, SoftmaxExp
from tests.attention.qkv import SHAPES, ragged_mask, random_qkv
from tests.pairwise import pairwise

DECAY = [0.9, 1.0, 0.3]
SEGMENTS = [[3, 3, 3, -1, -1, 8, 8, 8, 8, 0, 7], [5] * 11]


def assert_same_with_gradients(attended, expected, inputs, exact, tolerance):
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((attended * towards.astype(attended.dtype)).sum(), inputs)
    expected_gradients = paddle.grad((expected * towards).sum(), exact)
    for name, gradient, expected_gradient in zip(["q", "k", "v", "decay"], gradients, expected_gradients):
        np.testing.assert_allclose(
            gradient.numpy(), expected_gradient.numpy(), rtol=tolerance, atol=tolerance, err_msg=name
        )


@pairwise(
    {
        "chunk_size": [1, 2, 3, None],
        "rotated": [False, True],
        "masked": [False, True],
        "dtype, tolerance": [("float32", 5e-5), ("float64", 1e-10)],
    }
)
def test_outputs_and_gradients_equal_the_double_sum(rotated, masked, dtype, tolerance, chunk_size):
    batch, heads, seq, head_dim, _ = shape = SHAPES[1]
    exact = [*random_qkv(*shape), paddle.to_tensor(DECAY, dtype="float64", stop_gradient=False)]
    inputs = [x.detach().astype(dtype) for x in exact]
    for x in inputs:
        x.stop_gradient = False
    mask = ragged_mask(batch, seq) if masked else None
    rotate = RotaryPositionEmbedding(head_dim) if rotated else None
    key_mask = None if mask is None else paddle.to_tensor(mask)
    attended = linear_attention(*inputs[:3], rotate, key_mask, decay=inputs[3], chunk_size=chunk_size)
    expected = reference.linear_attention(*exact[:3], range(seq) if rotated else None, mask, decay=exact[3])
    assert attended.dtype == inputs[0].dtype
    assert_same_with_gradients(attended, expected, inputs, exact, tolerance)


@pytest.mark.parametrize("chunk_size", [3, 64])
def test_a_text_read_backwards_gives_the_outputs_backwards(chunk_size):
    qkv, options = random_qkv(2, 2, 10, 4, 3), {"decay": [0.9, 0.4], "chunk_size": chunk_size}
    straight = linear_attention(*qkv, **options)
    backwards = linear_attention(*(x.flip(2) for x in qkv), **options)
    np.testing.assert_allclose(backwards.flip(2).numpy(), straight.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seq", [13, 300])
def test_a_vanishing_gamma_leaves_each_token_alone(seq):
    q, k, v = random_qkv(1, 2, seq, 4, 3, dtype="float32")
    gammas = paddle.full([2], 1e-30)
    gammas.stop_gradient = False
    for kernel, chunk_size in ((linear_attention, None), (linear_attention, 8), (causal_linear_attention, 8)):
        attended = kernel(q, k, v, decay=gammas, chunk_size=chunk_size)
        np.testing.assert_allclose(attended.numpy(), v.numpy(), rtol=1e-4, atol=1e-4)
        assert all(np.isfinite(x.numpy()).all() for x in paddle.grad(attended.sum(), [q, k, v, gammas]))


@pytest.mark.parametrize("normalizer", ["unrotated", "rotated", "none"])
@pytest.mark.parametrize("placement", ["qk", "vo", "qkvo"])
def test_every_normalizer_and_placement_equals_the_double_sum(placement, normalizer):
    qkv = random_qkv(2, 2, 7, 4, 4)
    positions = np.arange(7) / 10  # angles under 90 degrees: rotated denominators are positive too
    rotary = RotaryPositionEmbedding(4)

    def rotate(x, inverse=False):
        return rotary(x, positions=paddle.to_tensor(positions), inverse=inverse)

    attended = linear_attention(
        *qkv, rotate, None, paddle.exp, normalizer, placement=placement, decay=[0.7, 0.95], chunk_size=3
    )
    expected = reference.linear_attention(
        *qkv, positions, None, paddle.exp, paddle.exp, normalizer, decay=[0.7, 0.95], placement=placement
    )
    assert_same_with_gradients(attended, expected, qkv, qkv, 1e-8 if normalizer == "none" else 1e-10)


@pytest.mark.parametrize("chunk_size", [1, 4, None])
@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
def test_packed_texts_equal_the_double_sum_within_segments(masked, chunk_size):
    qkv = random_qkv(2, 2, 11, 4, 3)
    mask = np.ones((2, 11), dtype=bool)
    if masked:
        mask[0, [0, 4, 10]] = mask[1, 7:] = False  # the first of a segment, the last, a whole one
    attended = linear_attention(
        *(*qkv, RotaryPositionEmbedding(4), paddle.to_tensor(mask)),
        segment_ids=paddle.to_tensor(SEGMENTS),
        decay=[0.9, 0.5],
        chunk_size=chunk_size,
    )
    expected = reference.linear_attention(*qkv, range(11), mask, segment_ids=SEGMENTS, decay=[0.9, 0.5])
    assert_same_with_gradients(attended, expected, qkv, qkv, 1e-9)


@pytest.mark.parametrize("seq", [1, 13, 128, 131, 300])
def test_outputs_do_not_depend_on_the_size_of_the_chunks(seq):
    qkv = random_qkv(2, 2, seq, 4, 3)
    rotary, mask = RotaryPositionEmbedding(4), paddle.to_tensor(ragged_mask(2, seq))
    whole = linear_attention(*qkv, rotary, mask, decay=[0.95, 1.0], chunk_size=seq).numpy()
    for chunk_size in (1, 5, 64, seq + 1, None):
        attended = linear_attention(*qkv, rotary, mask, decay=[0.95, 1.0], chunk_size=chunk_size).numpy()
        np.testing.assert_allclose(attended, whole, rtol=0, atol=1e-11)


@pytest.mark.parametrize("normalizer", ["unrotated", "none"])
@pytest.mark.parametrize("chunk_size", [4, None])
def test_a_gamma_of_one_is_no_decay(chunk_size, normalizer):
    qkv = random_qkv(2, 2, 11, 4, 3)
    mask = paddle.to_tensor(ragged_mask(2, 11))
    options = {"key_mask": mask, "normalizer": normalizer}
    for packed in ({}, {"segment_ids": paddle.to_tensor(SEGMENTS)}):
        plain = linear_attention(*qkv, RotaryPositionEmbedding(4), **options, **packed)
        decayed = linear_attention(
            *qkv, RotaryPositionEmbedding(4), **options, **packed, decay=[1.0, 1.0], chunk_size=chunk_size
        )
        assert_same_with_gradients(decayed, plain, qkv, qkv, 1e-9)


def test_the_sums_are_two_causal_scans_that_share_the_diagonal():
    q, k, _ = random_qkv(1, 2, 9, 4, 3)
    decay = paddle.to_tensor([0.9, 0.6], dtype="float64")

    def weights(kernel, q, k, decay):  # those of unit vectors, over that of the diagonal
        unit = paddle.eye(9, dtype="float64").expand([1, 2, 9, 9])
        shares = kernel(q, k, unit, decay=decay, chunk_size=4).numpy()
        return shares / shares[:, :, range(9), range(9)][..., np.newaxis]

    left = weights(causal_linear_attention, q, k, decay)
    backwards = weights(causal_linear_attention, q.flip(2), k.flip(2), decay)
    right = backwards[:, :, ::-1, ::-1]
    both = weights(linear_attention, q, k, decay)
    np.testing.assert_allclose(both, left + right - np.eye(9), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype, unit", [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_half_precision_loses_no_more_than_its_rounding(dtype, unit):
    halves = [x.detach().astype(dtype) for x in random_qkv(2, 2, 200, 4, 3)]
    exact = [x.astype("float64") for x in halves]
    rotary = RotaryPositionEmbedding(4)
    decay = [0.99, 1.0]
    for chunk_size in (64, None):
        attended = linear_attention(*halves, rotary, decay=decay, chunk_size=chunk_size)
        assert attended.dtype == halves[0].dtype
        expected = linear_attention(*exact, rotary, decay=decay).numpy()
        np.testing.assert_allclose(attended.astype("float64").numpy(), expected, rtol=unit, atol=1e-5)


def test_no_square_of_the_length_is_ever_held():
    seq = 100_001  # weights [seq, seq] of this length would be 40 GB
    q, k, v = random_qkv(1, 1, seq, 2, 1, dtype="float32")
    attended = linear_attention(q, k, v, RotaryPositionEmbedding(2), decay=[0.999])
    assert attended.shape == [1, 1, seq, 1]
    assert all(bool(paddle.isfinite(x).all()) for x in (attended, *paddle.grad(attended.sum(), [q, k, v])))


def test_a_text_of_padding_alone_gives_zero():
    q, k, v = random_qkv(2, 1, 3, 4, 2, dtype="float32")
    mask = paddle.to_tensor([[True, True, True], [False, False, False]])
    attended = linear_attention(q, k, v, RotaryPositionEmbedding(4), mask, decay=[0.5])
    for x in (attended, *paddle.grad(attended.sum(), [q, k, v])):
        assert np.isfinite(x.numpy()).all()
        assert (x[1].numpy() == 0).all()
        assert (x[0].numpy() != 0).any()


@pytest.mark.parametrize("feature_map, normalizer", [(SoftmaxExp(), "unrotated"), (OnePlusCosine(), "rotated")])
def test_weights_of_maps_that_give_a_probability_still_sum_to_one(feature_map, normalizer):
    q, k, _ = random_qkv(1, 2, 9, 4, 1)
    unit = paddle.eye(9, dtype="float64").expand([1, 2, 9, 9])
    rotate = RotaryPositionEmbedding(4) if normalizer == "rotated" else None
    weights = linear_attention(q, k, unit, rotate, None, feature_map, normalizer, decay=[0.9, 0.5]).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert (weights >= 0).all()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"chunk_size": 0}, "chunk_size must be positive"),
        ({"decay": [0.5]}, "2 numbers in"),
        ({"decay": [0.5, 0.0]}, "2 numbers in"),
        ({"decay": [0.5, 1.1]}, "2 numbers in"),
        ({"decay": paddle.ones([1, 2, 4])}, "2 numbers in"),
        ({"decay": paddle.to_tensor([0.5, float("nan")])}, "2 numbers in"),
    ],
    ids=["chunk", "heads", "zero", "above one", "length", "nan"],
)
def test_impossible_options_are_an_error(options, words):
    with pytest.raises(ValueError, match=words):
        linear_attention(*random_qkv(1, 2, 3, 4, 2), **options)
