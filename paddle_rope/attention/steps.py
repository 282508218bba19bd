"""Causal attention token by token: linear from a state of fixed size, softmax with a key-value cache, which holds only
the last tokens with a window."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import paddle
from paddle import Tensor

from paddle_rope.attention.arguments import by_head, check_decay, check_linear_options, for_all_heads, placed
from paddle_rope.attention.feature_maps import FeatureMapLike, elu_plus_one
from paddle_rope.attention.linear import BOUNDS, attend
from paddle_rope.attention.softmax import Places, softmax_attention, weighted_values, window_attention
from paddle_rope.backend import computable, padded
from paddle_rope.native.dispatch import native_form
from paddle_rope.native.operators import native_linear_attention_step
from paddle_rope.rotary import Rope, apply_rotary

_GROWTH = 256  # tokens by which a cache grows


class LinearAttentionState(NamedTuple):
    """The state of causal linear attention after the previous tokens; its size does not depend on their number.

    >>> LinearAttentionState._fields
    ('key_values', 'keys', 'length')
    """

    key_values: Tensor  # sum_j gamma^(i-j) R_j phi(k_j) v_j^T, [batch, heads, features, value_dim]
    keys: Tensor | None  # sum_j gamma^(i-j) phi(k_j), [batch, heads, features, 1]; None without denominator
    length: int  # number of tokens so far, the position of the next


@native_form(partial(native_linear_attention_step, bounds=BOUNDS), feature_map=elu_plus_one, placement="qk")
def linear_attention_step(
    state: LinearAttentionState | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rope: Rope | None = None,
    key_mask: Tensor | None = None,
    feature_map: FeatureMapLike = elu_plus_one,
    normalizer: str = "unrotated",
    decay: Sequence[float] | Tensor | None = None,
    placement: str = "qk",
) -> tuple[LinearAttentionState, Tensor]:
    r"""The next token, or tokens, of causal :func:`linear_attention`: ``state, y = linear_attention_step(state, ...)``.

    S_i = gamma S_{i-1} + R_i phi(k_i) v_i^T, z_i = gamma z_{i-1} + phi(k_i),
    o_i = (R_i phi(q_i))^T S_i / phi(q_i)^T z_i (arXiv 2006.16236, eq. 18-20, there without R and gamma).
    Time and memory do not depend on the number of previous tokens.

    Args:
        state: a :class:`LinearAttentionState`, float32 at least; None before the first token. It is not changed.
        q, k, v: ``[batch, new, heads, head_dim]``; the last axis of v is ``value_dim``.
        rope: R at the positions of the new tokens, ``rotary.cos_sin(new, offset=state.length)``.

    >>> state, token = None, paddle.ones([1, 1, 2, 4])
    >>> for _ in range(3):
    ...     state, y = linear_attention_step(state, token, token, token)
    >>> state.length, tuple(y.shape)
    (3, (1, 1, 2, 4))
    """
    check_linear_options(feature_map, normalizer, placement)
    sees = {"decay": check_decay(decay, q.shape[2]), "causal": True, "output_final_state": True}
    *known, length = state or (None, None, 0)
    output, key_values, keys = attend(q, k, v, rope, key_mask, feature_map, normalizer, placement, sees, *known)
    return LinearAttentionState(key_values, keys, length + q.shape[1]), output


@dataclass
class KeyValueState:
    """The cache of causal softmax attention: keys and values of the previous tokens, or with a window of the last ones,
    rotated where RoPE applies.

    The next step writes its tokens into the free capacity behind them, which grows when it is full.
    """

    keys: Tensor  # [batch, heads, capacity, head_dim], heads before tokens so that no step transposes them
    values: Tensor | None  # [batch, heads, capacity, value_dim]; None where they are the keys
    length: int  # number of tokens stored

    def written(self, *new: Tensor) -> list[Tensor]:
        """Keys and values followed by ``new`` ones, ``[batch, heads, new, size]``."""
        end, written = self.length + new[0].shape[2], []
        for known, more in zip((self.keys, self.values), new):
            if end > known.shape[2]:
                known = padded(known, 2, after=-(-end // _GROWTH) * _GROWTH - known.shape[2])
            known[:, :, self.length : end] = more
            written.append(known)
        return written


def softmax_attention_step(
    state, q, k, v, rope=None, key_mask=None, dropout=0.0, placement="qk", score_bias=None, window=None
):
    """The next tokens of causal :func:`~paddle_rope.softmax_attention` or, with a window, :func:`window_attention`.

    Args:
        state: as returned by the previous call, None at the start.
        q: ``[batch, new, heads, head_dim]``.
        k, v: like q or, if query heads share them, with fewer heads, a divisor of the number in q. If v is k, and both
            or neither are rotated, one tensor is kept.
        rope: R at the positions of the new tokens.
        key_mask: bool ``[batch, seq]`` of all tokens, old and new.
        score_bias, window: None for no bias, and for no window; a window ignores the bias.
    """
    one_tensor = v is k and ("k" in placement) == ("v" in placement)
    *turns, of_output = placed(rope, placement)
    q, k, v = (apply_rotary(x, *turn) for x, turn in zip((q, k, v), turns))
    if state is None or window is not None:
        if state is not None:
            k = paddle.concat([by_head(state.keys), k], axis=1)
            v = k if one_tensor else paddle.concat([by_head(state.values), v], axis=1)
        seen = None if key_mask is None else key_mask[:, -k.shape[1] :]
        qkv = q, for_all_heads(k, q.shape[2]), for_all_heads(v, q.shape[2])
        if window is None:
            attended = softmax_attention(*qkv, None, seen, dropout, causal=True, score_bias=score_bias)
        else:
            attended = window_attention(*qkv, window, None, seen, dropout, causal=True)
            k, v = (x[:, -window:].clone() if x.shape[1] > window else x for x in (k, v))
        kept, length = [by_head(k), by_head(v)], k.shape[1]
    else:
        kept, length = state.written(by_head(k), *([] if one_tensor else [by_head(v)])), state.length + k.shape[1]
        attended = _attend_to_cache(q, kept[0], kept[-1], length, key_mask, dropout, score_bias)
    return KeyValueState(kept[0], None if one_tensor else kept[1], length), apply_rotary(attended, *of_output)


def _attend_to_cache(q, keys, values, length, key_mask, dropout, score_bias):
    """Causal softmax attention of the last of ``length`` tokens to keys and values followed by free capacity."""
    batch, new, heads, _ = q.shape
    groups, capacity = keys.shape[1:3]
    if key_mask is not None:
        key_mask = padded(key_mask.astype("int32"), 1, after=capacity - length)
    hidden = Places(new, length - new, capacity, causal=True).hidden(key_mask, None, computable(q)[0].dtype)
    if score_bias is not None:
        score_bias = padded(score_bias.expand([-1, heads, new, length]), 3, after=capacity - length)
        score_bias = score_bias.reshape([-1, groups, heads // groups * new, capacity])
    rows = by_head(q).reshape([batch, groups, heads // groups * new, q.shape[3]])  # all queries of a group
    hidden = hidden.tile([1, 1, heads // groups, 1])
    rows, keys, values = computable(rows, keys, values)
    attended = weighted_values(rows, keys, values, hidden, dropout, score_bias)
    return by_head(attended.reshape([batch, heads, new, values.shape[3]])).astype(q.dtype)
