"""Causal softmax attention token by token with a key-value cache, which holds only the last tokens with a window."""

import functools
from dataclasses import dataclass

import paddle
from paddle import Tensor

from paddle_rope.attention.arguments import by_head, for_all_heads, rotate_back, rotate_qkv
from paddle_rope.attention.softmax import computable, softmax_attention, weighted_values, window_attention
from paddle_rope.layers import padded

_ROOM = 256  # tokens by which a cache grows


@dataclass
class KeyValueState:
    """The cache of causal softmax attention: keys and values of the previous tokens, or with a window of the last ones,
    rotated where RoPE applies.

    The next step writes its tokens into the free room after them, which grows when it is full. A state that has been
    continued before is copied first, so that texts can branch.
    """

    keys: Tensor  # [batch, heads, room, head_dim], heads before tokens so that no step transposes them
    values: Tensor | None  # [batch, heads, room, value_dim]; None where they are the keys
    length: int  # number of tokens stored
    is_continued: bool = False

    def written(self, *new: Tensor) -> list[Tensor]:
        """Keys and values followed by ``new`` ones, ``[batch, heads, new, size]``."""
        end, rooms = self.length + new[0].shape[2], []
        for room, more in zip((self.keys, self.values), new):
            if end > room.shape[2]:
                room = padded(room, 2, after=-(-end // _ROOM) * _ROOM - room.shape[2])
            elif self.is_continued:
                room = room.clone()
            room[:, :, self.length : end] = more
            rooms.append(room)
        self.is_continued = True
        return rooms


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
    q, k, v = rotate_qkv(q, k, v, rope, placement)
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
        rooms, length = [by_head(k), by_head(v)], k.shape[1]
    else:
        rooms, length = state.written(by_head(k), *([] if one_tensor else [by_head(v)])), state.length + k.shape[1]
        attended = _attend_to_room(q, rooms[0], rooms[-1], length, key_mask, dropout, score_bias)
    return KeyValueState(rooms[0], None if one_tensor else rooms[1], length), rotate_back(attended, rope, placement)


def _attend_to_room(q, keys, values, length, key_mask, dropout, score_bias):
    """Causal softmax attention of the last of ``length`` tokens to keys and values followed by free room."""
    batch, new, heads, _ = q.shape
    groups, room = keys.shape[1:3]
    conditions = []
    if key_mask is not None:
        conditions.append(padded(key_mask.astype("int32"), 1, after=room - length).astype("bool").unsqueeze([1, 2]))
    if key_mask is None or new > 1:  # one token sees all keys of the mask
        causal = paddle.arange(room) <= paddle.arange(length - new, length).unsqueeze(1)
        conditions.append(causal.unsqueeze([0, 1]))
    if score_bias is not None:
        score_bias = padded(score_bias.expand([-1, heads, new, length]), 3, after=room - length)
        score_bias = score_bias.reshape([-1, groups, heads // groups * new, room])
    rows = by_head(q).reshape([batch, groups, heads // groups * new, q.shape[3]])  # all queries of a group
    visible = functools.reduce(paddle.logical_and, conditions).tile([1, 1, heads // groups, 1])
    rows, keys, values = computable(rows, keys, values)
    attended = weighted_values(rows, keys, values, visible, dropout, score_bias)
    return by_head(attended.reshape([batch, heads, new, values.shape[3]])).astype(q.dtype)
