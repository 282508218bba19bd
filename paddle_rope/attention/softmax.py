"""Softmax attention to all tokens, quadratic in seq, and to nearby tokens, linear in seq."""

import functools
import math
from collections.abc import Sequence

import paddle
import paddle.nn.functional as F
from paddle import Tensor
from paddle.nn.functional.flash_attention import flash_attn_unpadded

from paddle_rope import layers
from paddle_rope.attention.arguments import (
    as_mask,
    by_head,
    check_layout,
    check_placement,
    check_segments,
    rotate_back,
    rotate_qkv,
)
from paddle_rope.layers import at_least_float32, computes_on_cpu, padded, scaled, without_amp
from paddle_rope.native.dispatch import native_form
from paddle_rope.native.operators import native_softmax_attention
from paddle_rope.rotary import Rope

# Smaller weights, which are lost in a float32 sum, become 0. Paddle's softmax on CPU leaves exp(-64) at masked keys;
# gradients that small underflow to subnormal numbers, which make the matrix products of backward many times slower.
_SMALLEST_WEIGHT = 1e-20
_LARGEST_HEAD, _HEAD_STEP = 256, 8  # sizes of heads that flash attention takes
_OLDEST_GPU = 80  # compute capability times ten
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
            kernels then need no mask, and padding sees the padding of its run. The number of runs is a shape, so it is
            known without reading from the device.

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
    dtype, (q, k, v) = q.dtype, computable(q, k, v)
    q, k, v = rotate_qkv(q, k, v, rope, placement)
    fused = score_bias is None and _fits_fused_kernels(q, k, v)
    if fused and cu_seqlens is not None:
        attended = _fused_runs(q, k, v, cu_seqlens, dropout, causal)
    elif fused and causal and key_mask is None and segment_ids is None and q.shape[1] == k.shape[1]:
        attended = _fused(q, k, v, None, dropout, causal)
    else:
        visible = _visible_keys(q, k, key_mask, segment_ids, causal)
        if fused:
            attended = _fused(q, k, v, visible, dropout)
        else:
            attended = by_head(weighted_values(by_head(q), by_head(k), by_head(v), visible, dropout, score_bias))
    return rotate_back(attended, rope, placement).astype(dtype)


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
    Distance counts positions in the row, padding included. Time and memory are O(seq * window).

    Args:
        q: ``[batch, queries, heads, head_dim]``, for the last ``queries`` of the ``seq`` tokens of the keys; in static
            graphs of unknown length, for all of them.
        k, v: ``[batch, seq, heads, head_dim]``; the last axis of v is ``value_dim``.
        window: w, at least 1: i sees 2w + 1 keys, with ``causal`` w + 1.

    Returns:
        ``[batch, queries, heads, value_dim]`` in the dtype of ``q``; 0 where a query sees no key.

    Raises:
        ValueError: ``window`` is less than 1; otherwise as :func:`~paddle_rope.softmax_attention`.

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
    dtype, (q, k, v) = q.dtype, computable(q, k, v)
    q, k, v = rotate_qkv(q, k, v, rope, placement)
    size = max(window, _SMALLEST_BLOCK)
    if 0 <= k.shape[1] <= size + 2 * window:  # no more products than with blocks
        visible = _visible_keys(q, k, key_mask, segment_ids, causal, window)
        attended = weighted_values(by_head(q), by_head(k), by_head(v), visible, dropout)
    else:
        q, k, v = by_head(q), by_head(k), by_head(v)
        attended = _in_blocks(q, k, v, window, size, key_mask, dropout, segment_ids, causal)
    return rotate_back(by_head(attended), rope, placement).astype(dtype)


def computable(*tensors: Tensor) -> Sequence[Tensor]:
    """The tensors, on CPU in float32 instead of half precision, in which Paddle cannot multiply matrices there."""
    return at_least_float32(*tensors) if computes_on_cpu() else tensors


def _visible_keys(q, k, key_mask, segment_ids, causal, window=None):
    r"""True where i sees j, with a ``window`` only if \|i - j\| <= ``window``: a bool that broadcasts to
    ``[batch, 1, queries, seq]``; None if every i sees every j.
    """
    conditions = []
    if key_mask is not None:
        conditions.append(key_mask.unsqueeze([1, 2]))
    if segment_ids is not None:
        own = segment_ids if q.shape[1] == k.shape[1] else segment_ids[:, -q.shape[1] :]
        conditions.append((own.unsqueeze(2) == segment_ids.unsqueeze(1)).unsqueeze(1))
    if window is not None or (causal and q.shape[1] != 1):  # the last token alone sees all keys
        queries, seq = (x.shape[1] if paddle.in_dynamic_mode() else paddle.shape(x)[1] for x in (q, k))
        lag = ((paddle.arange(queries) + (seq - queries)).unsqueeze(1) - paddle.arange(seq)).unsqueeze([0, 1])  # i - j
        conditions.append(lag >= (0 if causal else -window))
        if window is not None:
            conditions.append(lag <= window)
    return functools.reduce(paddle.logical_and, conditions) if conditions else None


def weighted_values(
    q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, dropout: float = 0.0, score_bias: Tensor | None = None
) -> Tensor:
    """sum_j softmax_j(q_i . k_j / sqrt(head_dim)) v_j over the visible j, of rotated q, k and v.

    q is ``[..., queries, head_dim]``, k and v are ``[..., seq, size]``; ``visible`` is a bool that broadcasts to
    ``[..., queries, seq]``, None for all. 0 where i sees no j.
    """
    scores = paddle.matmul(q * (1.0 / math.sqrt(q.shape[-1])), k, transpose_y=True)  # [..., queries, seq]
    if score_bias is not None:
        scores = scores + score_bias.astype(scores.dtype)
    if visible is not None:
        visible.stop_gradient = True  # required to expand a bool in static graphs
        shown = visible.expand(scores.shape if paddle.in_dynamic_mode() else paddle.shape(scores))
        scores = paddle.where(shown, scores, paddle.full_like(scores, _masked_score(scores.dtype)))
    weights = F.thresholded_relu(F.softmax(scores, axis=-1), _SMALLEST_WEIGHT)
    attended = paddle.matmul(layers.dropout(weights, dropout), v)
    return attended if visible is None else _zero_where_none(attended, visible)


def _zero_where_none(attended, visible):
    """0 for queries that see no key: ``[..., queries, value_dim]`` and bool ``[..., queries, seq]``."""
    if computes_on_cpu() and visible.numpy().any(axis=-1).all():  # reading it takes less time than a product
        return attended
    return scaled(attended, visible.astype("float32").max(axis=-1, keepdim=True))


def _masked_score(dtype):
    """The score of masked keys: finite in ``dtype`` and below any real score, so that they get no weight. In types
    wider than float16 it is not the lowest number, because kernels multiply scores by log2(e).
    """
    return -65504.0 if dtype == paddle.float16 else -1e30


def _fits_fused_kernels(q, k, v):
    """Whether flash attention supports these: half precision with a common head_dim, on a GPU of compute capability 8.0
    (Ampere) or newer, and not in a static graph.
    """
    # not q.place, which the tracing of to_static in paddle 3.x cannot read
    if not paddle.in_dynamic_mode() or not paddle.get_device().startswith("gpu") or not _fits_fused_shapes(q, k, v):
        return False
    major, minor = paddle.device.cuda.get_device_capability()
    return 10 * major + minor >= _OLDEST_GPU and q.dtype in (paddle.float16, paddle.bfloat16)


def _fits_fused_shapes(q, k, v):
    head_dim = q.shape[-1]
    return head_dim <= _LARGEST_HEAD and head_dim % _HEAD_STEP == 0 and head_dim == k.shape[-1] == v.shape[-1]


def _fused(q, k, v, visible, dropout, causal=False):
    """:func:`weighted_values` by the kernels of a GPU, which never store the weights; ``[batch, seq, heads, size]``.

    The mask is a finite number added to the scores, so that a row without visible keys is not NaN. It is
    ``[batch, 1, 1, seq]`` where all queries see the same keys.
    """
    added = None
    if visible is not None:
        visible = visible.expand([q.shape[0], *visible.shape[1:]])
        hidden = paddle.full_like(visible, _masked_score(q.dtype), dtype=q.dtype)
        added = paddle.where(visible, paddle.zeros_like(hidden), hidden)
    with without_amp():  # AMP would cast the mask to another dtype than q
        attended = F.scaled_dot_product_attention(
            q, k, v, attn_mask=added, dropout_p=dropout, is_causal=causal, training=dropout > 0
        )
    return attended if visible is None else _zero_where_none(attended, by_head(visible))


def _fused_runs(q, k, v, cu_seqlens, dropout, causal):
    """:func:`_fused` within the runs of tokens that ``cu_seqlens`` bounds. The longest run is assumed to fill a row,
    because its length is not known on the host."""
    rows, seq = [x.flatten(0, 1) for x in (q, k, v)], k.shape[1]
    with without_amp():
        found, _ = flash_attn_unpadded(
            *rows, cu_seqlens, cu_seqlens, seq, seq, scale=q.shape[-1] ** -0.5,
            dropout=dropout, causal=causal, training=dropout > 0,
        )  # fmt: skip
    return found.reshape(q.shape)


def _in_blocks(q, k, v, window, size, key_mask, dropout, segment_ids, causal):
    """:func:`window_attention` of rotated tensors, heads before tokens: queries are cut into blocks, and each block is
    multiplied with its keys and up to ``window`` keys on each side. Key number r of a block is ``window`` tokens
    before its query number r."""
    queries = paddle.shape(q)[2] if q.shape[2] < 0 else q.shape[2]
    earlier = 0 if k.shape[2] < 0 or q.shape[2] < 0 else k.shape[2] - queries  # keys before the first query
    if key_mask is None:
        key_mask = paddle.ones([1, earlier + queries], dtype="int32")
    seen = window if causal else 2 * window  # keys that a query sees in addition to its own
    blocks, parts = (queries + size - 1) // size, -(-(size + seen) // size)
    # Not slices, whose gradient is slow on CPU
    neighbors = (paddle.arange(blocks).unsqueeze(1) + paddle.arange(parts)).flatten()

    def own(x):
        """``[batch, heads, queries, features]`` -> ``[batch, heads, blocks, size, features]``, zeros at the end."""
        return padded(x, 2, after=blocks * size - queries).reshape([-1, x.shape[1], blocks, size, x.shape[3]])

    def near(x):
        """``[batch, heads, seq, features]`` -> ``[batch, heads, blocks, parts * size, features]``, zeros outside."""
        if earlier > window:
            x = x[:, :, earlier - window :]
        x = padded(x, 2, max(window - earlier, 0), (blocks + parts - 1) * size - queries - window)
        x = x.reshape([-1, x.shape[1], blocks + parts - 1, size, x.shape[3]])
        return paddle.index_select(x, neighbors, axis=2).reshape([-1, x.shape[1], blocks, parts * size, x.shape[4]])

    lag = paddle.arange(parts * size) - paddle.arange(size).unsqueeze(1)  # j - i + window
    visible = paddle.logical_and(lag >= 0, lag <= seen)
    is_key = near(key_mask.astype("int32").unsqueeze([1, 3]))  # paddle 2.6.2 cannot select from a bool tensor
    visible = paddle.logical_and(visible, is_key.astype("bool").transpose([0, 1, 2, 4, 3]))
    if segment_ids is not None:
        ids = segment_ids.unsqueeze([1, 3])
        visible = paddle.logical_and(visible, own(ids[:, :, earlier:]) == near(ids).transpose([0, 1, 2, 4, 3]))
    attended = weighted_values(own(q), near(k), near(v), visible, dropout)
    attended = attended.reshape([-1, v.shape[1], blocks * size, v.shape[3]])
    return paddle.index_select(attended, paddle.arange(queries), axis=2)
