"""Decay: weights w_ij = gamma^|i - j| that fall with the distance between i and j, gamma in (0, 1] for each head.

The sums over j <= i are causal attention's, S_i = gamma S_{i-1} + phi(k_i) v_i^T; the sums over j >= i belong to
the text read backwards, and j = i counts once.

Within a chunk of tokens the weights are a table. What lies outside it enters through a state for each side. No exponent
of a gamma is negative, and time and memory are linear in seq.
"""

from typing import NamedTuple

import paddle
from paddle import Tensor

from paddle_rope.attention.sums import join_chunks, running_states, split_chunks
from paddle_rope.layers import scaled

# A text up to this length is one table of weights; longer ones are cut into chunks.
_ONE_TABLE = 128
_CHUNK = 64


class Side(NamedTuple):
    """How far the tokens of a chunk are from the state on one side of it."""

    from_state: Tensor  # weight between the state and each token, [.., .., .., size, 1]
    to_state: Tensor  # between each token and the state that the next chunk sees, alike
    keep: Tensor  # between the state before the chunk and the one that the next chunk sees, [.., .., .., 1, 1]


class DecayWeights(NamedTuple):
    """w_ij of a batch. Axes are batch, heads, chunks, each of which may be 1, and those of a chunk."""

    seq: int  # tokens; -1 where a static graph does not know it
    size: int  # tokens of a chunk; seq if there is one alone
    within: Tensor  # between the tokens of a chunk, [.., .., .., size, size]
    sides: tuple[Side, ...]  # the left one and the right one; none of one chunk alone

    def sums(self, phi_q: Tensor, phi_k: Tensor, v: Tensor) -> Tensor:
        """s_i = sum_j w_ij (phi_q_i . phi_k_j) v_j; features and values ``[batch, heads, seq, size]``."""
        phi_q, phi_k, v = (_split(x, self.size, self.seq) for x in (phi_q, phi_k, v))
        keys = phi_k.transpose([0, 1, 2, 4, 3])
        if phi_k.shape[-1] == 1 and not paddle.in_dynamic_mode():  # noqa: SIM108  two comments
            products = phi_q * keys  # oneDNN's matrix product of one feature is wrong in graphs of paddle 3.3.1
        else:
            products = paddle.matmul(phi_q, keys)
        sums = paddle.matmul(scaled(products, self.within), v)
        for side, reverse in zip(self.sides, (False, True)):
            updates = paddle.matmul(scaled(phi_k, side.to_state), v, transpose_x=True)
            states = running_states(updates, side.keep, reverse)
            sums = sums + paddle.matmul(scaled(phi_q, side.from_state), states)
        return sums.squeeze(2) if self.size == self.seq else join_chunks(sums, self.seq)


def decay_weights(
    decay: Tensor,
    like: Tensor,
    segment_ids: Tensor | None = None,
    chunk_size: int | None = None,
) -> DecayWeights:
    """The weights of a batch.

    Args:
        decay: gamma ``[heads]``, in (0, 1].
        like: ``[batch, heads, seq, size]``, whose length and dtype are those of the sums. Where a static graph does not
            know the length, one table has the weights of all tokens, quadratic in seq.
        segment_ids: integer ``[batch, seq]``, equal ids side by side: w_ij = 0 between different ids.
        chunk_size: any positive number; None for one that is fast.
    """
    seq = like.shape[2]
    size = seq if seq <= (chunk_size or _ONE_TABLE) else (chunk_size or _CHUNK)  # where seq is -1, too, one table
    within, left, right = _tables(decay.astype(like.dtype), size if size >= 0 else paddle.shape(like)[2])
    if segment_ids is not None:
        ids = _split(segment_ids.unsqueeze([1, 3]), size, seq)
        within = within * (ids == ids.transpose([0, 1, 2, 4, 3])).astype(within.dtype)
        # a state is of the segment at the edge of its chunk, see segment_sums
        first, last = ids[:, :, :, :1], ids[:, :, :, -1:]
        before = paddle.concat([last[:, :, :1], last[:, :, :-1]], axis=2)
        after = paddle.concat([first[:, :, 1:], first[:, :, -1:]], axis=2)
        left = _where(left, ids == before, ids == last, last == before)
        right = _where(right, ids == after, ids == first, first == after)
    sides = () if size == seq else (left, right)
    return DecayWeights(seq, size, within, sides)


def decay_of_state(decay: Tensor | None, seq: int, dtype: paddle.dtype) -> Side | None:
    """The left side of ``seq`` tokens as one chunk, without the axis of chunks; None without decay."""
    if decay is None:
        return None
    gamma = decay.astype(dtype).reshape([1, -1, 1, 1])
    powers = range(1, seq + 1), range(seq - 1, -1, -1), range(seq, seq + 1)
    return Side(*(gamma ** paddle.arange(x.start, x.stop, x.step).astype(dtype).unsqueeze(-1) for x in powers))


def _tables(gamma, size):
    """gamma ``[heads]`` -> the weights within a chunk of ``size`` tokens, its left side and its right one."""
    gamma = gamma.reshape([1, -1, 1, 1, 1])
    index = paddle.arange(size).astype(gamma.dtype).unsqueeze(1)
    within = gamma ** (index - index.transpose([1, 0])).abs()
    left = Side(gamma ** (index + 1), gamma ** (size - 1 - index), gamma**size)
    return within, left, Side(gamma ** (size - index), gamma**index, left.keep)


def _where(side, *conditions):
    """A side whose weights are 0 where the conditions, one for each, do not hold."""
    return Side(*(weight * condition.astype(weight.dtype) for weight, condition in zip(side, conditions)))


def _split(x, size, seq):
    """``[batch, heads, seq, features]`` -> ``[batch, heads, chunks, size, features]``."""
    return x.unsqueeze(2) if size == seq else split_chunks(x, size)
