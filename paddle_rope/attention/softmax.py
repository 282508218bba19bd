"""Softmax attention to all tokens, quadratic in seq, and to nearby tokens, linear in seq."""

import functools
import math
from typing import Any, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_rope import layers
from paddle_rope.attention.arguments import (
    as_mask,
    by_head,
    check_layout,
    check_placement,
    check_segments,
    placed,
    transposed,
)
from paddle_rope.backend import (
    as_dtype,
    computable,
    fits_fused_attention,
    fits_fused_window,
    fused_attention,
    fused_attention_of_runs,
    fused_window_attention,
    is_known,
    length_of,
    masked_score,
    padded,
    remembered,
    scaled,
    with_hidden,
    without_subnormals,
)
from paddle_rope.native.dispatch import native_form
from paddle_rope.native.operators import native_softmax_attention
from paddle_rope.rotary import Rope, apply_rotary

# Smallest block of queries in a window: in narrower ones Paddle's overhead for each block outweighs the products that
# they save.
_SMALLEST_BLOCK = 32


@native_form(native_softmax_attention, check_layout, placement="qk", score_bias=None)
def softmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rope: Rope | None = None,
    key_mask: Tensor | None = None,
    dropout: float = 0.0,
    segment_ids: Tensor | None = None,
    causal: bool = False,
    placement: str = "qk",
    score_bias: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> Tensor:
    r"""o_i = sum_j softmax_j((R_i q_i) . (R_j k_j) / sqrt(head_dim)) v_j  (arXiv 2104.09864, eq. 2, 14-16).

    Args:
        q: ``[batch, queries, heads, head_dim]``, for the last ``queries`` of the ``seq`` tokens of the keys.
        k, v: ``[batch, seq, heads, head_dim]``; the last axis of v is ``value_dim``.
        rope: R, from :meth:`~paddle_rope.RotaryPositionEmbedding.cos_sin`, for q and k of equal length; None for no
            position.
        key_mask: bool or 0/1 ``[batch, seq]``, False at padding; padded keys get weight 0.
        dropout: probability with which an attention weight is dropped, 0 in evaluation.
        segment_ids: integer ``[batch, seq]`` for packed sequences: j runs over the tokens with the id of i.
        causal: j <= i only.
        placement: what R rotates, some of the letters ``qkvo``: with v and o, o_i = R_i^T sum_j softmax_j(..) R_j v_j
            (kexue.fm 10862).
        score_bias: added to the scores, broadcast to ``[batch, heads, queries, seq]``:
            :func:`~paddle_rope.positions.alibi_bias`.
        cu_seqlens: int32 ``[runs + 1]``, the information of ``segment_ids`` and ``key_mask`` in another form, given in
            addition to them: the start of each text or stretch of padding in the concatenated rows, then the end. GPU
            kernels then need no mask, and padding sees the padding of its run.

    Returns:
        ``[batch, queries, heads, value_dim]`` in the dtype of ``q``; time and memory are quadratic in seq. A query that
        sees no key, as in a text of padding alone, gets 0 and passes no gradient on, in every form of attention.

    >>> q = k = v = paddle.ones([1, 5, 2, 4])
    >>> from paddle_rope import RotaryPositionEmbedding
    >>> tuple(softmax_attention(q, k, v, RotaryPositionEmbedding(4).cos_sin(5)).shape)
    (1, 5, 2, 4)
    """
    check_placement(placement)
    check_segments(segment_ids, k.shape[0], k.shape[1])
    key_mask = as_mask("key_mask", key_mask, k.shape[0], k.shape[1])
    dtype, (*turns, of_output) = q.dtype, placed(rope, placement)
    q, k, v = (apply_rotary(x, *turn) for x, turn in zip(computable(q, k, v), turns))
    fits, queries, seq = score_bias is None and fits_fused_attention(q, k, v), length_of(q, 1), length_of(k, 1)
    places = Places(queries, seq - queries, seq, causal and q.shape[1] != 1)  # the last token sees all
    if fits and cu_seqlens is not None:
        attended = fused_attention_of_runs(q, k, v, cu_seqlens, dropout, causal)
    elif fits and causal and key_mask is None and segment_ids is None and q.shape[1] == k.shape[1]:
        attended = fused_attention(q, k, v, None, dropout, causal)
    elif fits:
        hidden = places.hidden(key_mask, segment_ids, q.dtype)
        attended = fused_attention(q, k, v, hidden, dropout)
        attended = attended if hidden is None else scaled(attended, by_head(sees_any(hidden)))
    else:
        attended = _attend(q, k, v, places, key_mask, segment_ids, dropout, score_bias)
    return as_dtype(apply_rotary(attended, *of_output), dtype)


@paddle.jit.not_to_static  # the rewriting of to_static mistakes unknown sizes for tensors
def window_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int,
    rope: Rope | None = None,
    key_mask: Tensor | None = None,
    dropout: float = 0.0,
    segment_ids: Tensor | None = None,
    causal: bool = False,
    placement: str = "qk",
) -> Tensor:
    r"""o_i = sum_{|i-j| <= w} softmax_j((R_i q_i) . (R_j k_j) / sqrt(head_dim)) v_j, the softmax over the same j.

    :func:`~paddle_rope.softmax_attention` in a sliding window (arXiv 2004.05150, section 3.1), with its arguments.
    i sees 2w + 1 keys, with ``causal`` w + 1; w = ``window`` is at least 1. Distance counts positions in the row,
    padding included. In static graphs of unknown length, queries are all of the tokens. Time and memory are
    O(seq * window).

    >>> q = k = v = paddle.ones([1, 500, 2, 4])
    >>> tuple(window_attention(q, k, v, window=8).shape)
    (1, 500, 2, 4)
    """
    check_layout(q, k, v, rope, key_mask)
    check_placement(placement)
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    check_segments(segment_ids, k.shape[0], k.shape[1])
    key_mask = as_mask("key_mask", key_mask, k.shape[0], k.shape[1])
    dtype, (*turns, of_output) = q.dtype, placed(rope, placement)
    q, k, v = (apply_rotary(x, *turn) for x, turn in zip(computable(q, k, v), turns))
    if key_mask is None and segment_ids is None and q.shape[1] == k.shape[1] and fits_fused_window(q, k, v):
        attended = fused_window_attention(q, k, v, window, dropout, causal)
    else:
        queries, seq, size = length_of(q, 1), length_of(k, 1), max(window, _SMALLEST_BLOCK)
        earlier = seq - queries if is_known(q.shape[1], k.shape[1]) else 0
        is_cut = not 0 <= k.shape[1] <= size + 2 * window  # otherwise blocks need more products
        places = Places(queries, earlier, seq, causal, window, size if is_cut else None)
        attended = _attend(q, k, v, places, key_mask, segment_ids, dropout)
    return as_dtype(apply_rotary(attended, *of_output), dtype)


class Places(NamedTuple):
    """Where queries and keys are, and which keys a query sees: with ``causal`` j <= i, with a ``window``
    |i - j| <= ``window``. With a ``size`` they are cut into blocks of that many queries, each with its keys and up to
    ``window`` on each side: key r of a block is ``window`` tokens before its query r. Numbers that a static graph does
    not know are tensors.
    """

    queries: Any
    earlier: Any  # keys before the first query
    keys: Any
    causal: bool = False
    window: Any = None
    size: Any = None

    @property
    def count(self) -> Any:
        """Number of blocks."""
        return (self.queries + self.size - 1) // self.size

    @property
    def parts(self) -> int:
        """Number of neighboring blocks that hold the keys of a block."""
        return -(-(self.size + (self.window if self.causal else 2 * self.window)) // self.size)

    def own(self, x: Tensor) -> Tensor:
        """``[batch, heads, queries, features]`` -> ``[batch, heads, blocks, size, features]``, zeros at the end."""
        if self.size is None:
            return x
        x = padded(x, 2, after=self.count * self.size - self.queries)
        return x.reshape([-1, x.shape[1], self.count, self.size, x.shape[3]])

    def near(self, x: Tensor) -> Tensor:
        """``[batch, heads, keys, features]`` -> ``[batch, heads, blocks, parts * size, features]``, zeros outside."""
        if self.size is None:
            return x
        width, all_parts = self.parts * self.size, self.count + self.parts - 1
        if isinstance(self.earlier, int) and self.earlier > self.window:
            x = x[:, :, self.earlier - self.window :]
        x = padded(x, 2, max(self.window - self.earlier, 0), all_parts * self.size - self.queries - self.window)
        x = x.reshape([-1, x.shape[1], all_parts, self.size, x.shape[3]])
        x = paddle.index_select(x, _neighbors(self.count, self.parts), axis=2)
        return x.reshape([-1, x.shape[1], self.count, width, x.shape[4]])

    def joined(self, x: Tensor) -> Tensor:
        """The inverse of :meth:`own`."""
        if self.size is None:
            return x
        x = x.reshape([-1, x.shape[1], self.count * self.size, x.shape[4]])
        return paddle.index_select(x, _first(self.queries), axis=2)  # not a slice, whose gradient is slow on CPU

    def hidden(self, key_mask: Tensor | None, segment_ids: Tensor | None, dtype: paddle.dtype) -> Any:
        """What to add to the scores, in ``dtype``, so that i sees j if the places allow it, both are of one segment and
        j is no padding: 0 or :func:`masked_score`, ``[batch or 1, 1, (blocks,) queries, keys]`` or broadcasting to it;
        None if every i sees every j. It is computed once for all layers."""
        parts = []
        if key_mask is not None:
            parts.append(_of_padding(self, key_mask, dtype))
        if segment_ids is not None:
            parts.append(_of_segments(self, segment_ids, dtype))
        if self.causal or self.window is not None:
            parts.append(_of_places(self, dtype))
        return functools.reduce(_together, parts) if parts else None


_together = remembered(paddle.minimum)
_first = remembered(paddle.arange)


@remembered
def _neighbors(blocks, parts):
    """The blocks of keys that a block of queries sees, one after the other: ``[blocks * parts]``."""
    return (paddle.arange(blocks).unsqueeze(1) + paddle.arange(parts)).flatten()


@remembered
def _of_padding(places, key_mask, dtype):
    if places.size is None:
        return _where_not(key_mask, dtype).unsqueeze([1, 2])
    is_key = places.near(key_mask.astype("int32").unsqueeze([1, 3]))  # paddle 2.6.2 cannot select from a bool tensor
    return _where_not(transposed(is_key), dtype)


@remembered
def _of_segments(places, segment_ids, dtype):
    ids = segment_ids.unsqueeze([1, 3])
    return _where_not(places.own(ids[:, :, places.earlier :]) == transposed(places.near(ids)), dtype)


@remembered
def _of_places(places, dtype):
    if places.size is None:
        query, key = (paddle.arange(places.queries) + places.earlier).unsqueeze(1), paddle.arange(places.keys)
    else:
        start = paddle.arange(places.count).unsqueeze([1, 2]) * places.size + places.earlier
        query = start + paddle.arange(places.size).unsqueeze(1)
        key = start + paddle.arange(places.parts * places.size) - places.window
    lag = query - key
    visible = [lag >= (0 if places.causal else -places.window)]
    if places.window is not None:
        visible.append(lag <= places.window)
    if places.size is not None:
        visible += [key >= 0, key < places.keys]
    return _where_not(functools.reduce(paddle.logical_and, visible), dtype).unsqueeze([0, 1])


def _where_not(visible, dtype):
    """What hides the keys that are not ``visible``, bool or 0/1."""
    return paddle.scale(visible.astype(dtype), -masked_score(dtype), bias=-1.0, bias_after_scale=False)


@remembered
def sees_any(hidden: Tensor) -> Tensor:
    """1 where a query sees a key, otherwise 0: ``[..., queries, 1]`` for ``hidden`` ``[..., queries, seq]``."""
    return (hidden.max(axis=-1, keepdim=True) == 0).astype(hidden.dtype)


def _attend(q, k, v, places, key_mask, segment_ids, dropout, score_bias=None):
    """Attention of rotated tensors, ``[batch, seq, heads, size]``."""
    hidden = places.hidden(key_mask, segment_ids, q.dtype)
    q, k, v = places.own(by_head(q)), places.near(by_head(k)), places.near(by_head(v))
    return by_head(places.joined(weighted_values(q, k, v, hidden, dropout, score_bias)))


def weighted_values(
    q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None, dropout: float = 0.0, score_bias: Tensor | None = None
) -> Tensor:
    """sum_j softmax_j(q_i . k_j / sqrt(head_dim)) v_j, of rotated q, k and v.

    q is ``[..., queries, head_dim]``, k and v are ``[..., seq, size]``; ``hidden`` and ``score_bias`` broadcast to
    ``[..., queries, seq]`` and are added to the scores. 0 where i sees no j.
    """
    scores = paddle.matmul(q * (1.0 / math.sqrt(q.shape[-1])), k, transpose_y=True)  # [..., queries, seq]
    if score_bias is not None:
        scores = scores + score_bias.astype(scores.dtype)
    if hidden is not None:
        scores = with_hidden(scores, hidden)
    weights = without_subnormals(F.softmax(scores, axis=-1))
    attended = paddle.matmul(layers.dropout(weights, dropout), v)
    return attended if hidden is None else scaled(attended, sees_any(hidden))
