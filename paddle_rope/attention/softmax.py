"""Softmax (quadratic) attention."""

import math

import paddle
import paddle.nn.functional as F

# Score of padded keys. float16 holds it, and exp of it is lost beside any real score.
MASKED_SCORE = -1e4
# Smaller weights become 0. Paddle's softmax on CPU leaves exp(-64) at masked keys; gradients that small underflow to
# subnormal numbers, which slow the matrix products of backward down many times. It is lost in a float32 sum.
_SMALLEST_WEIGHT = 1e-20


def softmax_attention(q, k, v, rotate=None, key_mask=None, dropout=None):
    r"""o_i = sum_j softmax_j((R_i q_i) . (R_j k_j) / sqrt(head_dim)) v_j  (arXiv 2104.09864, eq. 14-16).

    Args:
        q, k: ``[batch, heads, seq, head_dim]``.
        v: ``[batch, heads, seq, value_dim]``.
        rotate: R, e.g. a :class:`~paddle_rope.RotaryPositionEmbedding`; None for no position.
        key_mask: bool ``[batch, seq]``, False at padding; padded keys get weight 0 (where all keys of a text are
            padding, its outputs are finite and mean nothing).
        dropout: layer applied to the attention weights ``[batch, heads, seq, seq]``; None for none.

    Returns:
        ``[batch, heads, seq, value_dim]`` in the dtype of ``q``; time and memory are quadratic in seq.
    """
    if rotate is not None:
        q, k = rotate(q), rotate(k)
    scores = paddle.matmul(q * (1.0 / math.sqrt(q.shape[-1])), k, transpose_y=True)  # [batch, heads, seq, seq]
    if key_mask is not None:
        is_key = key_mask.unsqueeze([1, 2]).expand(scores.shape)
        scores = paddle.where(is_key, scores, paddle.full_like(scores, MASKED_SCORE))
    weights = F.thresholded_relu(F.softmax(scores, axis=-1), _SMALLEST_WEIGHT)
    if dropout is not None:
        weights = dropout(weights)
    return paddle.matmul(weights, v)
