"""Softmax (quadratic) attention."""

import math

import paddle
import paddle.nn.functional as F

from paddle_rope.attention.packing import check_segments

# Score of padded keys. float16 holds it, and exp of it is lost beside any real score.
MASKED_SCORE = -1e4
# Smaller weights become 0. Paddle's softmax on CPU leaves exp(-64) at masked keys; gradients that small underflow to
# subnormal numbers, which slow the matrix products of backward down many times. It is lost in a float32 sum.
_SMALLEST_WEIGHT = 1e-20


def softmax_attention(q, k, v, rotate=None, key_mask=None, dropout=None, segment_ids=None, causal=False):
    r"""o_i = sum_j softmax_j((R_i q_i) . (R_j k_j) / sqrt(head_dim)) v_j  (arXiv 2104.09864, eq. 14-16).

    Args:
        q, k: ``[batch, heads, seq, head_dim]``.
        v: ``[batch, heads, seq, value_dim]``.
        rotate: R, e.g. a :class:`~paddle_rope.RotaryPositionEmbedding`; None for no position.
        key_mask: bool ``[batch, seq]``, False at padding; padded keys get weight 0 (where all keys of a text are
            padding, its outputs are finite and mean nothing).
        dropout: layer applied to the attention weights ``[batch, heads, seq, seq]``; None for none.
        segment_ids: integer ``[batch, seq]`` for packed sequences: j runs over the tokens with the id of i.
        causal: j <= i only.

    Returns:
        ``[batch, heads, seq, value_dim]`` in the dtype of ``q``; time and memory are quadratic in seq. With
        ``segment_ids`` or ``causal`` a query that sees no key gets 0.

    Raises:
        ValueError: ``segment_ids`` is not integer ``[batch, seq]``.
    """
    if segment_ids is not None:
        check_segments(segment_ids, k.shape[0], k.shape[2])
    if rotate is not None:
        q, k = rotate(q), rotate(k)
    scores = paddle.matmul(q * (1.0 / math.sqrt(q.shape[-1])), k, transpose_y=True)  # [batch, heads, seq, seq]
    visible = _visible(scores.shape, key_mask, segment_ids, causal)
    if visible is not None:
        scores = paddle.where(visible, scores, paddle.full_like(scores, MASKED_SCORE))
    weights = F.thresholded_relu(F.softmax(scores, axis=-1), _SMALLEST_WEIGHT)
    if causal or segment_ids is not None:
        weights = weights * visible.astype(weights.dtype)  # without any visible key the softmax spreads over all
    if dropout is not None:
        weights = dropout(weights)
    return paddle.matmul(weights, v)


def _visible(shape, key_mask, segment_ids, causal):
    """True where i sees j, bool ``shape`` = ``[batch, heads, seq, seq]``; None if every i sees every j."""
    conditions = []
    if key_mask is not None:
        conditions.append(key_mask.unsqueeze([1, 2]))
    if segment_ids is not None:
        conditions.append((segment_ids.unsqueeze(2) == segment_ids.unsqueeze(1)).unsqueeze(1))
    if causal:
        conditions.append(paddle.ones(shape[2:], dtype="int32").tril().astype("bool"))
    if not conditions:
        return None
    visible = conditions[0]
    for condition in conditions[1:]:
        visible = paddle.logical_and(visible, condition)
    return visible.expand(shape)
