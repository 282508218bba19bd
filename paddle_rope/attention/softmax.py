"""Softmax (quadratic) attention."""

import functools
import math
from collections.abc import Callable, Sequence

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_rope.attention.fused import fits_fused_kernels, fused_weighted_values, masked_score
from paddle_rope.attention.placement import Rotation, check_placement, rotate_at
from paddle_rope.attention.sums import check_segments
from paddle_rope.layers import computes_on_cpu, scaled
from paddle_rope.precision import at_least_float32

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
    dtype, (q, k, v) = q.dtype, computable(q, k, v)
    q, k, v = (rotate_at(place, x, rotate, placement) for place, x in zip("qkv", (q, k, v)))
    visible = visible_keys(q, k, key_mask, segment_ids, causal)
    some_see_none = causal or segment_ids is not None
    attended = weighted_values(q, k, v, visible, some_see_none, dropout, score_bias)
    attended = rotate_at("o", attended, rotate, placement)
    return attended if attended.dtype == dtype else attended.astype(dtype)


def computable(*tensors: Tensor) -> Sequence[Tensor]:
    """float32 instead of half precision on CPU, where Paddle multiplies no matrices in half precision."""
    return at_least_float32(*tensors) if computes_on_cpu() else tensors


def visible_keys(
    q: Tensor,
    k: Tensor,
    key_mask: Tensor | None,
    segment_ids: Tensor | None,
    causal: bool,
    window: int | None = None,
) -> Tensor | None:
    """True where i sees j: bool that broadcasts to ``[batch, 1, queries, seq]``; None if every i sees every j.

    Args:
        window: largest \|i - j\|; None for no bound.
        q, k, key_mask, segment_ids, causal: as :func:`softmax_attention`.
    """
    conditions = []
    if key_mask is not None:
        conditions.append(key_mask.unsqueeze([1, 2]))
    if segment_ids is not None:
        own = segment_ids if q.shape[2] == k.shape[2] else segment_ids[:, -q.shape[2] :]
        conditions.append((own.unsqueeze(2) == segment_ids.unsqueeze(1)).unsqueeze(1))
    if causal or window is not None:
        queries, seq = (x.shape[2] if paddle.in_dynamic_mode() else paddle.shape(x)[2] for x in (q, k))
        lag = (paddle.arange(queries) + (seq - queries)).unsqueeze(1) - paddle.arange(seq)  # i - j
        if causal:
            conditions.append(lag >= 0)
        if window is not None:
            conditions.append(lag <= window)
        if window is not None and not causal:
            conditions.append(lag >= -window)
    return functools.reduce(paddle.logical_and, conditions) if conditions else None


def weighted_values(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    visible: Tensor | None,
    some_see_none: bool,
    dropout: Callable[[Tensor], Tensor] | None = None,
    score_bias: Tensor | None = None,
) -> Tensor:
    """sum_j softmax_j(q_i . k_j / sqrt(head_dim)) v_j over the visible j, of what is rotated already.

    Args:
        q: ``[..., queries, head_dim]``.
        k: ``[..., seq, head_dim]``.
        v: ``[..., seq, value_dim]``.
        visible: bool that broadcasts to ``[..., queries, seq]``, True where i sees j; None for all.
        some_see_none: whether there may be queries without visible keys that count: they get 0.
        dropout, score_bias: as :func:`softmax_attention`.

    Returns:
        ``[..., queries, value_dim]``.
    """
    if score_bias is None and fits_fused_kernels(q, k, v, dropout):
        return fused_weighted_values(q, k, v, visible, some_see_none, dropout)
    q = q * (1.0 / math.sqrt(q.shape[-1]))
    scores = paddle.matmul(q, k, transpose_y=True)  # [..., queries, seq]
    if score_bias is not None:
        scores = scores + score_bias.astype(scores.dtype)
    if visible is not None:
        visible.stop_gradient = True  # which the expansion of bool in static graphs insists on
        shown = visible.expand(scores.shape if paddle.in_dynamic_mode() else paddle.shape(scores))
        scores = paddle.where(shown, scores, paddle.full_like(scores, masked_score(scores.dtype)))
    weights = F.thresholded_relu(F.softmax(scores, axis=-1), _SMALLEST_WEIGHT)
    if dropout is not None:
        weights = dropout(weights)
    values = paddle.matmul(weights, v)
    if some_see_none and visible is not None:  # without any visible key the softmax spreads over all
        values = scaled(values, visible.astype("float32").max(axis=-1, keepdim=True))
    return values
