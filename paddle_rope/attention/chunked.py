"""The sums of linear attention over some tokens only, or with decay, chunk by chunk: time and memory linear in seq.

Within a chunk of tokens the weights are formed, ``[size, size]``. What lies outside it enters through a state for each
side, the matrix sum_j phi_k_j v_j^T, which runs from chunk to chunk. No exponent of a gamma is negative.
"""

from functools import reduce
from operator import mul
from typing import NamedTuple

import paddle
from paddle import Tensor

from paddle_rope.layers import scaled

# A text up to this length is one chunk; longer ones are cut.
_ONE_CHUNK = 128
_CHUNK = 64


class Side(NamedTuple):
    """How far the tokens of a chunk are from the state on one side of it; None for a weight of 1."""

    from_state: Tensor | None  # weight between the state and each token, [.., .., .., size, 1]
    to_state: Tensor | None  # between each token and the state that the next chunk sees, alike
    keep: Tensor | None  # between the state before the chunk and the one that the next chunk sees, [.., .., .., 1, 1]


class ChunkedSums:
    r"""s_i = sum_j gamma^|i - j| (q_i . k_j) v_j, over the j <= i or all j, of the segment of i.

    Args:
        like: ``[batch, heads, seq, size]``, which has the length and dtype of the sums. Where a static graph does not
            know the length, one chunk has the weights of all tokens, quadratic in seq.
        decay: gamma ``[heads]``, in (0, 1]; None for 1.
        segment_ids: integer ``[batch, seq]``, equal ids side by side: j runs over the segment of i; None for one.
        causal: over the j <= i only.
        chunk_size: any positive number; None for one that is fast.

    Example:
        >>> ones = paddle.ones([1, 1, 4, 1])
        >>> ChunkedSums(ones, causal=True, chunk_size=2)(ones, ones, ones).flatten().tolist()
        [1.0, 2.0, 3.0, 4.0]
    """

    def __init__(
        self,
        like: Tensor,
        decay: Tensor | None = None,
        segment_ids: Tensor | None = None,
        causal: bool = False,
        chunk_size: int | None = None,
    ) -> None:
        seq, dtype = like.shape[2], like.dtype
        self.seq = seq  # -1 where a static graph does not know it: one chunk
        self.size = seq if seq <= (chunk_size or _ONE_CHUNK) else (chunk_size or _CHUNK)
        size = self.size if seq >= 0 else paddle.shape(like)[2]
        index = paddle.arange(size).astype(dtype).unsqueeze(1)
        lag = index - index.transpose([1, 0])  # i - j
        gamma = None if decay is None else decay.astype(dtype).reshape([1, -1, 1, 1, 1])
        ids = None if segment_ids is None else self._split(segment_ids.unsqueeze([1, 3]))  # [batch, 1, chunks, size, 1]
        self.within = _product(
            (lag >= 0).astype(dtype) if causal else None,
            None if gamma is None else gamma ** lag.abs(),
            None if ids is None else (ids == ids.transpose([0, 1, 2, 4, 3])).astype(dtype),
        )
        self.left = decay_of_side(gamma, index + 1, size - 1 - index, size)
        self.right = None if causal else decay_of_side(gamma, size - index, index, size)
        if ids is not None:
            # Segments are contiguous: a state belongs to the segment at the edge of its chunk. The first one is 0
            first, last = ids[:, :, :, :1], ids[:, :, :, -1:]
            before = paddle.concat([last[:, :, :1], last[:, :, :-1]], axis=2)
            after = paddle.concat([first[:, :, 1:], first[:, :, -1:]], axis=2)
            self.left = _where(self.left, dtype, ids == before, ids == last, last == before)
            if self.right is not None:
                self.right = _where(self.right, dtype, ids == after, ids == first, first == after)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q, k ``[batch, heads, seq, features]``, v ``[batch, heads, seq, value_dim]`` -> as v."""
        q, k, v = self._split(q), self._split(k), self._split(v)
        if k.shape[-1] == 1 and not paddle.in_dynamic_mode():
            # oneDNN's matrix product of one feature is wrong in graphs of paddle 3.3.1
            products = q * k.transpose([0, 1, 2, 4, 3])
        else:
            products = paddle.matmul(q, k, transpose_y=True)
        sums = paddle.matmul(_scaled(products, self.within), v)
        if self.size == self.seq:
            return sums.squeeze(2)
        for side, reverse in ((self.left, False), (self.right, True)):
            if side is not None:
                updates = paddle.matmul(_scaled(k, side.to_state), v, transpose_x=True)
                states = _running_states(updates, side.keep, reverse)
                sums = sums + paddle.matmul(_scaled(q, side.from_state), states)
        batch, heads, chunks, size, features = sums.shape
        return sums.reshape([batch, heads, chunks * size, features])[:, :, : self.seq]

    def _split(self, x):
        """``[batch, heads, seq, features]`` -> ``[batch, heads, chunks, size, features]``, zeros at the end."""
        if self.size == self.seq:
            return x.unsqueeze(2)
        batch, heads, seq, features = x.shape
        missing = -seq % self.size
        if missing:
            x = paddle.concat([x, paddle.zeros([batch, heads, missing, features], dtype=x.dtype)], axis=2)
        return x.reshape([batch, heads, (seq + missing) // self.size, self.size, features])


def decay_of_side(gamma: Tensor | None, from_state: Tensor, to_state: Tensor, keep: int) -> Side:
    """Powers of gamma by their exponents; gamma is broadcast to the tokens of each head, None for 1."""
    return Side(None, None, None) if gamma is None else Side(gamma**from_state, gamma**to_state, gamma**keep)


def _where(side, dtype, *conditions):
    """A side whose weights are 0 where the conditions, one for each, do not hold."""
    return Side(*(_product(weight, condition.astype(dtype)) for weight, condition in zip(side, conditions)))


def _product(*factors):
    """The product of the factors that are not None; None if there are none."""
    given = [factor for factor in factors if factor is not None]
    return reduce(mul, given) if given else None


def _scaled(x, factor):
    return x if factor is None else scaled(x, factor)


def _running_states(updates, keep, reverse):
    """state_0 = 0, state_{c+1} = keep_c state_c + update_c: the state before each chunk, or behind it in ``reverse``.

    ``updates`` are ``[batch, heads, chunks, features, value_dim]``, the last of which is in no state; ``keep`` has
    these axes or 1, None for 1.
    """
    step = -1 if reverse else 1
    if keep is not None:
        keep = paddle.unbind(keep.expand([*updates.shape[:3], 1, 1]), axis=2)[::step]
    updates = paddle.unbind(updates, axis=2)[::step]
    states = [paddle.zeros_like(updates[0])]
    for chunk, update in enumerate(updates[:-1]):
        state = states[-1] if keep is None else states[-1] * keep[chunk]
        states.append(state + update)
    return paddle.stack(states[::step], axis=2)
