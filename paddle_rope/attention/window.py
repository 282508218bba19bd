"""Softmax attention to the tokens near by, in time and memory linear in seq.

Queries are cut into blocks; a block is multiplied with its own keys and those up to ``window`` to its sides.
"""

import paddle
from paddle import Tensor

from paddle_rope.attention.arguments import (
    by_head,
    check_placement,
    check_segments,
    rotate_back,
    rotate_qkv,
)
from paddle_rope.attention.softmax import computable, visible_keys, weighted_values, zero_where_none
from paddle_rope.layers import padded
from paddle_rope.rotary import Rope

# Smallest block of queries: in narrower ones Paddle's overhead for each block outweighs the products that they save.
_SMALLEST_BLOCK = 32


@paddle.jit.not_to_static  # whose rewriting takes unknown sizes for tensors
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

    :func:`~paddle_rope.softmax_attention` within a sliding window (arXiv 2004.05150, section 3.1), with its arguments.
    Distance counts positions in the row, padding included. Time and memory are O(seq * window).

    Args:
        q: ``[batch, queries, heads, head_dim]``: the last ``queries`` tokens of the ``seq`` that the keys are of; in
            static graphs of unknown length all of them.
        k, v: ``[batch, seq, heads, head_dim]`` or, of v, ``value_dim``.
        window: w, at least 1: i sees 2w + 1 keys, with ``causal`` w + 1.

    Returns:
        ``[batch, queries, heads, value_dim]`` in the dtype of ``q``; 0 where a query sees no key.

    Raises:
        ValueError: ``window`` is less than 1; otherwise as :func:`~paddle_rope.softmax_attention`.

    Example:
        >>> q = k = v = paddle.ones([1, 500, 2, 4])
        >>> tuple(window_attention(q, k, v, window=8).shape)
        (1, 500, 2, 4)
    """
    check_placement(placement)
    if window < 1:
        raise ValueError(f"window must be at least 1, got {window}")
    check_segments(segment_ids, k.shape[0], k.shape[1])
    dtype, (q, k, v) = q.dtype, computable(q, k, v)
    q, k, v = rotate_qkv(q, k, v, rope, placement)
    size = max(window, _SMALLEST_BLOCK)
    if 0 <= k.shape[1] <= size + 2 * window:  # not more products than in blocks
        visible = visible_keys(q, k, key_mask, segment_ids, causal, window)
        attended = zero_where_none(weighted_values(by_head(q), by_head(k), by_head(v), visible, dropout), visible)
    else:
        q, k, v = by_head(q), by_head(k), by_head(v)
        attended = _in_blocks(q, k, v, window, size, key_mask, dropout, segment_ids, causal)
    return rotate_back(by_head(attended), rope, placement).astype(dtype)


def _in_blocks(q, k, v, window, size, key_mask, dropout, segment_ids, causal):
    """:func:`window_attention` of what is rotated, heads before tokens. Key m of a block is ``window`` before its
    query r where m = r."""
    queries = paddle.shape(q)[2] if q.shape[2] < 0 else q.shape[2]
    earlier = 0 if k.shape[2] < 0 or q.shape[2] < 0 else k.shape[2] - queries  # keys before the first query
    if key_mask is None:
        key_mask = paddle.ones([1, earlier + queries], dtype="int32")
    seen = window if causal else 2 * window  # keys that a query sees beside its own
    blocks, parts = (queries + size - 1) // size, -(-(size + seen) // size)
    # Not by slices, the gradient of which is slow on CPU
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
    is_key = near(key_mask.astype("int32").unsqueeze([1, 3]))  # paddle 2.6.2 selects no bool
    visible = paddle.logical_and(visible, is_key.astype("bool").transpose([0, 1, 2, 4, 3]))
    if segment_ids is not None:
        ids = segment_ids.unsqueeze([1, 3])
        visible = paddle.logical_and(visible, own(ids[:, :, earlier:]) == near(ids).transpose([0, 1, 2, 4, 3]))
    attended = zero_where_none(weighted_values(own(q), near(k), near(v), visible, dropout), visible)
    attended = attended.reshape([-1, v.shape[1], blocks * size, v.shape[3]])
    return paddle.index_select(attended, paddle.arange(queries), axis=2)
