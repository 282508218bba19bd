"""Packed sequences: texts in one row do not see each other, in every kind of attention."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import (
    RotaryPositionEmbedding,
    causal_linear_attention,
    linear_attention,
    reference,
    softmax_attention,
    window_attention,
)
from paddle_rope.attention import OnePlusCosine, SoftmaxExp
from paddle_rope.attention.sums import segment_sums, segment_weights
from tests.attention.qkv import random_qkv
from tests.pairwise import pairwise

KERNELS = {
    "softmax": (softmax_attention, reference.softmax_attention, {}),
    "causal softmax": (softmax_attention, reference.softmax_attention, {"causal": True}),
    "window softmax": (
        lambda *args, **kwargs: window_attention(*args[:3], 4, *args[3:], **kwargs),
        partial(reference.softmax_attention, window=4),
        {},
    ),
    "linear": (linear_attention, reference.linear_attention, {}),
    "causal linear": (
        lambda *args, causal, **kwargs: causal_linear_attention(*args, chunk_size=3, **kwargs),
        reference.linear_attention,
        {"causal": True},
    ),
    "causal linear with decay": (
        lambda *args, causal, **kwargs: causal_linear_attention(*args, chunk_size=4, **kwargs),
        reference.linear_attention,
        {"causal": True, "decay": [0.9, 0.5]},
    ),
}
SEGMENTS = [[3, 3, 3, -1, -1, 8, 8, 8, 8, 0, 7], [5] * 11]


@pairwise({"name": sorted(KERNELS), "rotated": [False, True], "masked": [False, True]})
def test_outputs_and_gradients_equal_the_double_sum_within_segments(name, rotated, masked):
    kernel, plain, options = KERNELS[name]
    qkv = random_qkv(2, 2, 11, 4, 3)
    mask = np.ones((2, 11), dtype=bool)
    mask[0, [0, 4, 10]] = mask[1, 7:] = False  # the first of a segment, the last, a whole one
    rotate = RotaryPositionEmbedding(4) if rotated else None
    attended = kernel(
        *qkv, rotate, paddle.to_tensor(mask) if masked else None, segment_ids=paddle.to_tensor(SEGMENTS), **options
    )
    expected = plain(*qkv, range(11) if rotated else None, mask if masked else None, segment_ids=SEGMENTS, **options)
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=1e-10)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((attended * towards).sum(), qkv)
    expected_gradients = paddle.grad((expected * towards).sum(), qkv)
    for variable, gradient, expected_gradient in zip("qkv", gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=1e-10, err_msg=variable)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 5, 11, 64])
def test_sums_within_segments_do_not_depend_on_the_size_of_the_chunks(chunk_size):
    qkv = random_qkv(2, 2, 11, 4, 3)
    segments = paddle.to_tensor(SEGMENTS)
    same = (segments.unsqueeze(2) == segments.unsqueeze(1)).unsqueeze(1).astype("float64")  # [batch, 1, seq, seq]
    weights = paddle.matmul(qkv[0], qkv[1], transpose_y=True) * same
    sums = segment_sums(*qkv, segments, chunk_size)
    expected = paddle.matmul(weights, qkv[2])
    np.testing.assert_allclose(sums.numpy(), expected.numpy(), rtol=0, atol=1e-12)
    for gradient, expected_gradient in zip(paddle.grad(sums.sum(), qkv), paddle.grad(expected.sum(), qkv)):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=1e-12)
    of_ones = segment_weights(*qkv[:2], segments)
    np.testing.assert_allclose(of_ones.numpy(), weights.sum(axis=-1, keepdim=True).numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float16", 4e-3), ("bfloat16", 3e-2)])
@pytest.mark.parametrize("name", ["softmax", "causal softmax", "window softmax", "linear", "causal linear"])
def test_packed_texts_equal_each_text_alone(name, dtype, tolerance):
    kernel, _, options = KERNELS[name]
    lengths = [1, 70, 3, 130, 64, 5]
    seq = sum(lengths)
    q, k, v = random_qkv(2, 2, seq, 6, 3, dtype=dtype)
    segments = np.repeat(np.arange(len(lengths)), lengths)[np.newaxis].repeat(2, axis=0)
    rotary = RotaryPositionEmbedding(6)
    packed = kernel(q, k, v, rotary, segment_ids=paddle.to_tensor(segments), **options)
    start = 0
    for length in lengths:
        alone = kernel(*(x[:, :, start : start + length] for x in (q, k, v)), rotary, **options)
        here = packed[:, :, start : start + length].astype("float64").numpy()
        assert packed.dtype == q.dtype
        np.testing.assert_allclose(here, alone.astype("float64").numpy(), rtol=tolerance, atol=tolerance)
        start += length
    for gradient in paddle.grad(packed.astype("float32").sum(), [q, k, v]):
        assert gradient.dtype == q.dtype and bool(paddle.isfinite(gradient.astype("float32")).all())


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_other_segments_have_no_influence_at_all(name):
    kernel, _, options = KERNELS[name]
    q, k, v = random_qkv(2, 2, 11, 4, 3, dtype="float32")
    segments = paddle.to_tensor(SEGMENTS)
    attended = kernel(q, k, v, segment_ids=segments, **options)
    here = np.array(SEGMENTS) == 8
    inside = paddle.to_tensor(here[:, np.newaxis, :, np.newaxis].astype("float32"))
    gradients = paddle.grad((attended * inside).sum(), [q, k, v], retain_graph=True)
    for gradient in gradients:
        assert (gradient.numpy().transpose([0, 2, 1, 3])[~here] == 0).all()
    other = kernel(*(x + 20 * (1 - inside) for x in (q, k, v)), segment_ids=segments, **options)
    np.testing.assert_array_equal((other * inside).numpy(), (attended * inside).numpy())


@pytest.mark.parametrize("name", ["softmax", "linear", "causal linear"])
def test_one_segment_is_no_segment(name):
    kernel, _, options = KERNELS[name]
    qkv = random_qkv(2, 2, 11, 4, 3)
    packed = kernel(*qkv, segment_ids=paddle.full([2, 11], 4, dtype="int32"), **options)
    np.testing.assert_allclose(packed.numpy(), kernel(*qkv, **options).numpy(), rtol=0, atol=1e-12)


def test_one_plus_cosine_stays_a_probability_within_segments():
    q, k, _ = random_qkv(2, 2, 11, 4, 1)
    v = paddle.eye(11, dtype="float64").expand([2, 2, 11, 11])  # the outputs are the weights
    weights = linear_attention(
        q, k, v, RotaryPositionEmbedding(4), None, OnePlusCosine(), "rotated", paddle.to_tensor(SEGMENTS)
    ).numpy()
    same = np.array(SEGMENTS)[:, :, np.newaxis] == np.array(SEGMENTS)[:, np.newaxis]
    assert (weights.transpose([0, 2, 3, 1])[~same] == 0).all()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [linear_attention, causal_linear_attention], ids=["linear", "causal linear"])
def test_memory_depends_neither_on_the_square_of_the_length_nor_on_the_number_of_segments(kernel):
    # [seq, seq] would be 40 GB, [segments, seq] 13 GB
    seq = 100_000
    q, k, v = random_qkv(1, 1, seq, 2, 1, dtype="float32")
    segments = paddle.arange(seq).unsqueeze(0) // 3
    attended = kernel(q, k, v, segment_ids=segments)
    gradients = paddle.grad(attended.sum(), [q, k, v])
    assert all(bool(paddle.isfinite(x).all()) for x in (attended, *gradients))
    last = kernel(q[:, :, -1:], k[:, :, -1:], v[:, :, -1:])  # a segment of one
    np.testing.assert_allclose(attended[0, 0, -1].numpy(), last[0, 0, 0].numpy(), rtol=0, atol=1e-6)


def test_a_causal_softmax_query_without_a_real_key_gets_zero():
    q, k, v = random_qkv(1, 2, 5, 4, 3, dtype="float32")
    mask = paddle.to_tensor([[False, False, True, True, True]])
    attended = softmax_attention(q, k, v, None, mask, causal=True)
    assert (attended[:, :, :2].numpy() == 0).all()
    assert (attended[:, :, 2:].numpy() != 0).all()
    np.testing.assert_allclose(attended[:, :, 2].numpy(), v[:, :, 2].numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "causal softmax", "window softmax"])
@pytest.mark.parametrize("seq", [11, 90])  # of one block of a window, and of several
def test_the_last_queries_see_their_own_segments(name, seq):
    kernel, _, options = KERNELS[name]
    q, k, v = random_qkv(2, 2, seq, 4, 3)
    segments = paddle.to_tensor(np.sort(np.random.randint(0, 4, (2, seq)), axis=1))
    whole = kernel(q, k, v, segment_ids=segments, **options)
    last = kernel(q[:, :, -5:], k, v, segment_ids=segments, **options)
    np.testing.assert_allclose(last.numpy(), whole[:, :, -5:].numpy(), rtol=0, atol=1e-12)


def test_segments_with_gaps_are_right_in_softmax_and_an_error_in_linear_attention():
    qkv = random_qkv(1, 1, 5, 4, 3)
    gaps = [[1, 2, 1, 1, 2]]
    attended = softmax_attention(*qkv, segment_ids=paddle.to_tensor(gaps))
    expected = reference.softmax_attention(*qkv, segment_ids=gaps)
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=1e-10)
    for kernel in (linear_attention, causal_linear_attention):
        with pytest.raises(ValueError, match="side by side"):
            kernel(*qkv, segment_ids=paddle.to_tensor(gaps))


@pytest.mark.parametrize("kernel", [softmax_attention, linear_attention, causal_linear_attention])
@pytest.mark.parametrize(
    "segment_ids, words",
    [
        (paddle.zeros([1, 4], dtype="int64"), "must be .batch, seq."),
        (paddle.zeros([5], dtype="int64"), "must be .batch, seq."),
        (paddle.zeros([1, 5]), "int32 or int64"),
        (paddle.ones([1, 5], dtype="bool"), "int32 or int64"),
    ],
    ids=["length", "axes", "float", "bool"],
)
def test_malformed_segments_are_an_error(kernel, segment_ids, words):
    with pytest.raises(ValueError, match=words):
        kernel(*random_qkv(1, 1, 5, 4, 3), segment_ids=segment_ids)


def test_a_map_over_the_sequence_does_not_know_segments():
    with pytest.raises(ValueError, match="whole sequence"):
        linear_attention(
            *random_qkv(1, 1, 5, 4, 3), feature_map=SoftmaxExp(), segment_ids=paddle.zeros([1, 5], dtype="int64")
        )
