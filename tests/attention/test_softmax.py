"""Softmax attention against its reference."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, reference, softmax_attention, window_attention
from paddle_rope.attention.softmax import masked_score
from paddle_rope.layers import Dropout
from tests.attention.qkv import SHAPES, ragged_mask, random_qkv
from tests.pairwise import pairwise


@pairwise(
    {
        "shape": SHAPES,
        "rotated": [False, True],
        "masked": [False, True],
        "dtype, tolerance": [("float32", 1e-5), ("float64", 1e-10)],
    }
)
def test_outputs_and_gradients_equal_the_reference(shape, rotated, masked, dtype, tolerance):
    batch, _, seq, head_dim, _ = shape
    exact = random_qkv(*shape)
    inputs = [x.detach().astype(dtype) for x in exact]
    for x in inputs:
        x.stop_gradient = False
    mask = ragged_mask(batch, seq) if masked else None
    rotate = RotaryPositionEmbedding(head_dim) if rotated else None
    attended = softmax_attention(*inputs, rotate, None if mask is None else paddle.to_tensor(mask))
    expected = reference.softmax_attention(*exact, range(seq) if rotated else None, mask)
    assert attended.dtype == inputs[0].dtype
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=tolerance)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((attended * towards.astype(dtype)).sum(), inputs)
    expected_gradients = paddle.grad((expected * towards).sum(), exact)
    for name, gradient, expected_gradient in zip("qkv", gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=tolerance, err_msg=name)


def test_a_text_of_padding_alone_gives_no_nan():
    q, k, v = random_qkv(2, 1, 3, 4, 2, dtype="float32")
    mask = paddle.to_tensor([[True, True, True], [False, False, False]])
    attended = softmax_attention(q, k, v, None, mask)
    gradients = paddle.grad(attended.sum(), [q, k, v])
    assert all(bool(paddle.isfinite(x).all()) for x in (attended, *gradients))


@pytest.mark.parametrize("score", [-9e3, -1e4, -2e4, -1e8])
@pytest.mark.parametrize("attend", [softmax_attention, partial(window_attention, window=2)], ids=["softmax", "window"])
def test_what_is_masked_has_no_weight_however_low_the_real_scores_are(attend, score):
    seq = 90  # of several blocks
    q, v = paddle.ones([1, 1, seq, 1]), paddle.arange(seq, dtype="float32").reshape([1, 1, seq, 1])
    k = paddle.where(v % 3 == 2, paddle.zeros_like(v), paddle.full_like(v, score))
    mask = (v % 3 != 2).reshape([1, seq])
    for options in ({"key_mask": mask}, {"causal": True}, {"segment_ids": paddle.arange(seq).unsqueeze(0) // 2}):
        v.stop_gradient = False
        attended = attend(q, k, v, **options)
        gradient = paddle.grad(attended[0, 0, 1].sum(), [v])[0].flatten().numpy()  # the weights of token 1
        hidden = np.arange(seq) > 1 if "key_mask" not in options else ~mask.numpy()[0]
        assert (gradient[hidden] == 0).all()
        np.testing.assert_allclose(gradient.sum(), 1, rtol=1e-6)


def test_the_score_of_what_is_masked_is_finite_in_its_dtype():
    assert np.isfinite(np.float16(masked_score(paddle.float16)))
    assert all(np.isfinite(np.float32(masked_score(dtype))) for dtype in (paddle.bfloat16, paddle.float32))


def test_outputs_see_relative_positions_only():
    rotary = RotaryPositionEmbedding(8)
    q, k, v = random_qkv(1, 2, 6, 8, 4)
    shifted = softmax_attention(q, k, v, lambda x: rotary(x, offset=321))
    np.testing.assert_allclose(shifted.numpy(), softmax_attention(q, k, v, rotary).numpy(), rtol=0, atol=1e-10)
    assert float((shifted - softmax_attention(q, k, v)).abs().max()) > 1e-2


def test_large_scores_pick_one_value():
    q, k, v = random_qkv(1, 1, 5, 4, 3, dtype="float32")
    attended = softmax_attention(1e3 * q, k, v)
    best = paddle.matmul(q, k, transpose_y=True)[0, 0].argmax(axis=-1)
    np.testing.assert_allclose(attended[0, 0].numpy(), v[0, 0].numpy()[best.numpy()], rtol=0, atol=1e-5)


def test_dropout_acts_on_the_weights():
    dropout = Dropout(0.5)
    q, k, v = random_qkv(1, 1, 40, 4, 40, dtype="float32")
    v = paddle.eye(40).reshape([1, 1, 40, 40])  # the outputs are the weights
    weights = softmax_attention(q, k, v).numpy()
    dropped = softmax_attention(q, k, v, dropout=dropout).numpy()
    kept = dropped != 0
    assert 0.4 < kept.mean() < 0.6
    np.testing.assert_allclose(dropped[kept], 2 * weights[kept], rtol=1e-5)
    dropout.eval()
    np.testing.assert_array_equal(softmax_attention(q, k, v, dropout=dropout).numpy(), weights)
