"""Softmax attention against its reference; padding has no influence."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, reference, softmax_attention
from paddle_rope.layers import Dropout

SHAPES = [(1, 1, 1, 2, 1), (2, 3, 5, 4, 3), (3, 1, 7, 6, 6)]  # batch, heads, seq, head_dim, value_dim


def random_qkv(batch, heads, seq, head_dim, value_dim, dtype="float64"):
    sizes = (head_dim, head_dim, value_dim)
    qkv = [paddle.to_tensor(np.random.standard_normal((batch, heads, seq, size)), dtype=dtype) for size in sizes]
    for x in qkv:
        x.stop_gradient = False
    return qkv


def ragged_mask(batch, seq):
    """The last row is full, the others lose keys at the end, in the middle or at the start."""
    mask = np.ones((batch, seq), dtype=bool)
    mask[: batch - 1, seq - seq // 3 :] = False
    mask[: batch - 1, 1 : 1 + seq // 5] = False
    if batch > 2:
        mask[1, : seq // 2] = False
    return mask


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
@pytest.mark.parametrize("rotated", [False, True], ids=["no position", "rope"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
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


@pytest.mark.parametrize("rotated", [False, True], ids=["no position", "rope"])
def test_padded_keys_have_no_influence(rotated):
    mask = ragged_mask(3, 9)
    rotate = RotaryPositionEmbedding(4) if rotated else None
    q, k, v = random_qkv(3, 2, 9, 4, 5, dtype="float32")
    attended = softmax_attention(q, k, v, rotate, paddle.to_tensor(mask))
    padding = paddle.to_tensor(~mask[:, np.newaxis, :, np.newaxis]).astype("float32")
    other = softmax_attention(q, k + 30 * padding, v - 500 * padding, rotate, paddle.to_tensor(mask))
    np.testing.assert_array_equal(other.numpy(), attended.numpy())
    _, k_gradient, v_gradient = paddle.grad((attended * attended).sum(), [q, k, v])
    for gradient in (k_gradient.numpy(), v_gradient.numpy()):
        at_tokens = gradient.transpose([0, 2, 1, 3])
        assert (at_tokens[~mask] == 0).all()
        assert (at_tokens[mask] != 0).all()


def test_a_padded_batch_equals_each_text_alone():
    rotate = RotaryPositionEmbedding(6)
    lengths = [3, 8, 1, 5]
    q, k, v = random_qkv(4, 2, 8, 6, 3, dtype="float32")
    mask = paddle.to_tensor(np.arange(8) < np.array(lengths)[:, np.newaxis])
    attended = softmax_attention(q, k, v, rotate, mask)
    for row, length in enumerate(lengths):
        alone = softmax_attention(*(x[row : row + 1, :, :length] for x in (q, k, v)), rotate)
        np.testing.assert_allclose(attended[row, :, :length].numpy(), alone[0].numpy(), rtol=0, atol=1e-6)


def test_a_text_of_padding_alone_gives_no_nan():
    q, k, v = random_qkv(2, 1, 3, 4, 2, dtype="float32")
    mask = paddle.to_tensor([[True, True, True], [False, False, False]])
    attended = softmax_attention(q, k, v, None, mask)
    gradients = paddle.grad(attended.sum(), [q, k, v])
    assert all(bool(paddle.isfinite(x).all()) for x in (attended, *gradients))


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
