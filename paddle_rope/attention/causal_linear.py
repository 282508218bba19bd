"""Causal linear attention: in parallel by chunks, and as a recurrence with an explicit state."""

from functools import partial
from typing import NamedTuple, Optional

import numpy as np
import paddle

from paddle_rope.attention.chunks import causal_sums
from paddle_rope.attention.feature_maps import elu_plus_one
from paddle_rope.attention.packing import check_segments
from paddle_rope.attention.placement import rotate_at
from paddle_rope.attention.similarity import at_least_float32, check_options, normalize, similarity_features
from paddle_rope.precision import without_amp


class LinearAttentionState(NamedTuple):
    """What a causal linear attention remembers of the tokens before: its size does not depend on their number."""

    key_values: paddle.Tensor  # sum_j gamma^(i-j) R_j phi(k_j) v_j^T, [batch, heads, features, value_dim]
    keys: Optional[paddle.Tensor]  # sum_j gamma^(i-j) phi(k_j), [batch, heads, features, 1]; None without normaliser
    length: int  # number of tokens so far, the position of the next


@paddle.jit.not_to_static  # as linear_attention
def causal_linear_attention(
    q,
    k,
    v,
    rotate=None,
    key_mask=None,
    feature_map=elu_plus_one,
    normalizer="unrotated",
    decay=None,
    segment_ids=None,
    chunk_size=64,
    report=None,
    placement="qk",
    state=None,
    return_state=False,
):
    r"""o_i = sum_{j<=i} gamma^(i-j) (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_{j<=i} gamma^(i-j) phi(q_i) . phi(k_j).

    :func:`~paddle_rope.linear_attention` where no token sees a later one (arXiv 2006.16236, eq. 8-9), with an optional
    decay (arXiv 2307.08621, eq. 5-7). All chunks are taken in parallel but for the state that runs through them: memory
    and time are linear in seq. The numbers do not depend on ``chunk_size`` except for rounding.

    Args:
        decay: gamma, one for each head in (0, 1]: a list or a tensor ``[heads]``, which may be trained. None for 1.
            Distance counts positions, padding included.
        chunk_size: positive; any length is cut into chunks of this size and a rest.
        state: a :class:`LinearAttentionState` of tokens before these, which then are seen too. ``rotate`` has to be at
            the positions that follow, e.g. ``functools.partial(rotary, offset=state.length)``.
        return_state: give the state after the last token too, to go on from here or by :func:`linear_attention_step`.
        q, k, v, rotate, key_mask, feature_map, normalizer, segment_ids, report, placement: as
            :func:`~paddle_rope.linear_attention`, with the same bounds and dtypes.

    Returns:
        ``[batch, heads, seq, value_dim]`` in the dtype of ``q``; 0 where a query has no real key yet. With
        ``return_state`` the pair (state, output).

    Raises:
        ValueError: as :func:`~paddle_rope.linear_attention`; ``decay`` or ``chunk_size`` out of range; a feature map
            that looks at the whole sequence; a static graph of unknown length.
    """
    check_options(feature_map, normalizer, report, placement)
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be positive, got {chunk_size}")
    if q.shape[2] < 0:
        raise ValueError("the chunks of causal linear attention need a known length in static graphs")
    if segment_ids is not None:
        if state is not None or return_state:
            raise ValueError("a state is of one text: give it without segment_ids")
        check_segments(segment_ids, k.shape[0], k.shape[2], side_by_side=True)
    decay = _checked_decay(decay, q.shape[1])
    dtype = q.dtype
    q, k, v = at_least_float32(q, k, v)
    with without_amp():  # which would take the sums in half precision
        above, below = similarity_features(q, k, rotate, key_mask, feature_map, normalizer, placement)
        v = rotate_at("v", v, rotate, placement)
        numerator = causal_sums(*above, v, decay, segment_ids, chunk_size)
        denominator = None
        if below is not None:
            denominator = causal_sums(*below, paddle.ones_like(v[..., :1]), decay, segment_ids, chunk_size)
        if state is not None:
            kept = _powers(decay, paddle.arange(1, v.shape[2] + 1), v.dtype)
            numerator = numerator + kept * paddle.matmul(above[0], state.key_values)
            denominator = None if below is None else denominator + kept * paddle.matmul(below[0], state.keys)
        output = normalize(numerator, denominator, normalizer, report, key_mask)
        output = rotate_at("o", output, rotate, placement).astype(dtype)
        if not return_state:
            return output
        return _state_after(state, above[1], None if below is None else below[1], v, decay), output


@paddle.jit.not_to_static  # as linear_attention
def linear_attention_step(
    state,
    q,
    k,
    v,
    rotate=None,
    feature_map=elu_plus_one,
    normalizer="unrotated",
    decay=None,
    report=None,
    placement="qk",
):
    r"""One token of :func:`causal_linear_attention`: ``state, y = linear_attention_step(state, q, k, v)``.

    S_i = gamma S_{i-1} + R_i phi(k_i) v_i^T, z_i = gamma z_{i-1} + phi(k_i),
    o_i = (R_i phi(q_i))^T S_i / phi(q_i)^T z_i
    (arXiv 2006.16236, eq. 18-20, there without R and gamma). Time and memory do not depend on the tokens before.

    Args:
        state: a :class:`LinearAttentionState`, float32 at least; None before the first token. It is not changed.
        q, k: ``[batch, heads, 1, head_dim]``.
        v: ``[batch, heads, 1, value_dim]``.
        rotate: called as ``rotate(x, offset=state.length)``, at "o" with ``inverse=True`` too: a
            :class:`~paddle_rope.RotaryPositionEmbedding`.
        feature_map, normalizer, decay, report, placement: as :func:`causal_linear_attention`.

    Returns:
        The new state and y ``[batch, heads, 1, value_dim]`` in the dtype of ``q``.

    Raises:
        ValueError: more than one token; otherwise as :func:`causal_linear_attention`.
    """
    check_options(feature_map, normalizer, report, placement)
    if q.shape[2] != 1 or k.shape[2] != 1:
        raise ValueError(f"a step takes one token, got {q.shape[2]} queries and {k.shape[2]} keys")
    decay = _checked_decay(decay, q.shape[1])
    dtype = q.dtype
    length = 0 if state is None else state.length
    q, k, v = at_least_float32(q, k, v)
    with without_amp():

        rotate_here = None if rotate is None else partial(rotate, offset=length)
        above, below = similarity_features(q, k, rotate_here, None, feature_map, normalizer, placement)
        v = rotate_at("v", v, rotate_here, placement)
        key_values = paddle.matmul(above[1], v, transpose_x=True)
        keys = None if below is None else below[1].transpose([0, 1, 3, 2])
        if state is not None:
            kept = 1.0 if decay is None else decay.astype(v.dtype).reshape([1, -1, 1, 1])
            key_values = key_values + kept * state.key_values
            keys = None if keys is None else keys + kept * state.keys
        numerator = paddle.matmul(above[0], key_values)
        denominator = None if below is None else paddle.matmul(below[0], keys)
        output = rotate_at("o", normalize(numerator, denominator, normalizer, report), rotate_here, placement)
    return LinearAttentionState(key_values, keys, length + 1), output.astype(dtype)


def _state_after(state, phi_k, keys, v, decay):
    """``state`` when these tokens have passed too; ``phi_k``, ``keys``: features ``[batch, heads, seq, features]``."""
    seq = v.shape[2]
    kept = _powers(decay, paddle.arange(seq - 1, -1, -1), v.dtype)
    key_values = paddle.matmul(phi_k * kept, v, transpose_x=True)
    keys = None if keys is None else (keys * kept).sum(axis=2).unsqueeze(-1)
    if state is None:
        return LinearAttentionState(key_values, keys, seq)
    kept = _powers(decay, paddle.to_tensor([seq]), v.dtype)
    keys = None if keys is None else keys + kept * state.keys
    return LinearAttentionState(key_values + kept * state.key_values, keys, state.length + seq)


def _powers(decay, exponents, dtype):
    """gamma^exponent for each head, ``[1, heads, exponents, 1]``; 1 without decay."""
    if decay is None:
        return paddle.ones([1, 1, 1, 1], dtype=dtype)
    return decay.astype(dtype).reshape([1, -1, 1, 1]) ** exponents.astype(dtype).unsqueeze(-1)


def _checked_decay(decay, heads):
    """Tensor ``[heads]`` in (0, 1], or None."""
    if decay is None:
        return None
    if not isinstance(decay, paddle.Tensor):
        given, decay = np.asarray(decay), paddle.to_tensor(decay, dtype="float64")
    elif paddle.in_dynamic_mode():
        given = decay.numpy()
    else:
        return decay  # in static graphs its numbers are not known
    if given.shape != (heads,) or not ((given > 0) & (given <= 1)).all():
        raise ValueError(f"decay must be {heads} numbers in (0, 1], one for each head, got {given.tolist()}")
    return decay
