"""Softmax (quadratic) attention."""

import functools
import math
from collections.abc import Callable

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_rope.attention.placement import Rotation, check_placement, rotate_at
from paddle_rope.attention.sums import check_segments

# Score of padded keys. float16 holds it, and exp of it is lost beside any real score.
MASKED_SCORE = -1e4
# Smaller weights become 0. Paddle's softmax on CPU leaves exp(-64) at masked keys; gradients that small underflow to
# subnormal numbers, which slow the matrix products of backward down many times. It is lost in a float32 sum.
_SMALLEST_WEIGHT = 1e-20


def softmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rotate: Rotation | None = None,
    key_mask: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
    segment_ids: Tensor | None = None,
    causal: bool = False,
    placement: str = "qk",
    score_bias: Tensor | None = None,
) -> Tensor:
    r"""o_i = sum_j softmax_j((R_i q_i) . (R_j k_j) / sqrt(head_dim)) v_j  (arXiv 2104.09864, eq. 2, 14-16).

    Args:
        q: ``[batch, heads, queries, head_dim]``: the last ``queries`` tokens of the ``seq`` that the keys are of.
        k: ``[batch, heads, seq, head_dim]``.
        v: ``[batch, heads, seq, value_dim]``.
        rotate: R, e.g. a :class:`~paddle_rope.RotaryPositionEmbedding`; None for no position. It is called on q and on
            k, which must then be of one length.
        key_mask: bool ``[batch, seq]``, False at padding; padded keys get weight 0 (where all keys of a text are
            padding, its outputs are finite and mean nothing).
        dropout: layer applied to the attention weights ``[batch, heads, queries, seq]``; None for none.
        segment_ids: integer ``[batch, seq]`` for packed sequences: j runs over the tokens with the id of i.
        causal: j <= i only.
        placement: what R rotates, some of the letters ``qkvo``: with v and o, o_i = R_i^T sum_j softmax_j(..) R_j v_j
            (kexue.fm 10862; see :mod:`~paddle_rope.attention.placement`).
        score_bias: added to the scores, broadcast to ``[batch, heads, queries, seq]``:
            :func:`~paddle_rope.positions.alibi_bias`.

    Returns:
        ``[batch, heads, queries, value_dim]`` in the dtype of ``q``; time and memory are quadratic in seq. With
        ``segment_ids`` or ``causal`` a query that sees no key gets 0.

    Raises:
        ValueError: ``segment_ids`` is not integer ``[batch, seq]``, or ``placement`` is unknown.
    """
    check_placement(placement)
    if segment_ids is not None:
        check_segments(segment_ids, k.shape[0], k.shape[2])
    q, k, v = (rotate_at(place, x, rotate, placement) for place, x in zip("qkv", (q, k, v)))
    scores = paddle.matmul(q * (1.0 / math.sqrt(q.shape[-1])), k, transpose_y=True)  # [batch, heads, queries, seq]
    if score_bias is not None:
        scores = scores + score_bias.astype(scores.dtype)
    visible = _visible(scores, key_mask, segment_ids, causal)
    if visible is not None:
        scores = paddle.where(visible, scores, paddle.full_like(scores, MASKED_SCORE))
    weights = F.thresholded_relu(F.softmax(scores, axis=-1), _SMALLEST_WEIGHT)
    if causal or segment_ids is not None:
        weights = weights * visible.astype(weights.dtype)  # without any visible key the softmax spreads over all
    if dropout is not None:
        weights = dropout(weights)
    return rotate_at("o", paddle.matmul(weights, v), rotate, placement)


def _visible(scores, key_mask, segment_ids, causal):
    """True where i sees j, bool of the shape of ``scores``; None if every i sees every j."""
    conditions = []
    if key_mask is not None:
        conditions.append(key_mask.unsqueeze([1, 2]))
    if segment_ids is not None:
        conditions.append((segment_ids.unsqueeze(2) == segment_ids.unsqueeze(1)).unsqueeze(1))
    shape = scores.shape if paddle.in_dynamic_mode() else paddle.shape(scores)
    if causal:
        queries, seq = shape[2], shape[3]
        conditions.append((paddle.arange(queries) + (seq - queries)).unsqueeze(1) >= paddle.arange(seq))
    if not conditions:
        return None
    visible = functools.reduce(paddle.logical_and, conditions)
    visible.stop_gradient = True  # which the expansion of bool in static graphs insists on
    return visible.expand(shape)
