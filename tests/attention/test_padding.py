"""Padding has no influence on any kind of attention."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, linear_attention, softmax_attention, window_attention
from tests.attention.qkv import ragged_mask, random_qkv

KERNELS = {
    "softmax": softmax_attention,
    "linear": linear_attention,
    "window": lambda q, k, v, *more: window_attention(q, k, v, 5, *more),
}
pytestmark = pytest.mark.parametrize("attend", KERNELS.values(), ids=KERNELS.keys())


@pytest.mark.parametrize("rotated", [False, True], ids=["no position", "rope"])
def test_padded_keys_have_no_influence(attend, rotated):
    mask = ragged_mask(3, 9)
    rotate = RotaryPositionEmbedding(4) if rotated else None
    q, k, v = random_qkv(3, 2, 9, 4, 5, dtype="float32")
    attended = attend(q, k, v, rotate, paddle.to_tensor(mask))
    padding = paddle.to_tensor(~mask[:, np.newaxis, :, np.newaxis]).astype("float32")
    other = attend(q, k + 30 * padding, v - 500 * padding, rotate, paddle.to_tensor(mask))
    np.testing.assert_array_equal(other.numpy(), attended.numpy())
    _, k_gradient, v_gradient = paddle.grad((attended * attended).sum(), [q, k, v])
    for gradient in (k_gradient.numpy(), v_gradient.numpy()):
        at_tokens = gradient.transpose([0, 2, 1, 3])
        assert (at_tokens[~mask] == 0).all()
        assert (at_tokens[mask] != 0).all()


def test_a_padded_batch_equals_each_text_alone(attend):
    rotate = RotaryPositionEmbedding(6)
    lengths = [3, 8, 1, 5]
    q, k, v = random_qkv(4, 2, 8, 6, 3, dtype="float32")
    mask = paddle.to_tensor(np.arange(8) < np.array(lengths)[:, np.newaxis])
    attended = attend(q, k, v, rotate, mask)
    for row, length in enumerate(lengths):
        alone = attend(*(x[row : row + 1, :, :length] for x in (q, k, v)), rotate)
        np.testing.assert_allclose(attended[row, :, :length].numpy(), alone[0].numpy(), rtol=0, atol=1e-6)
