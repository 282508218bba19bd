"""Two-sided decay: weights w_ij in (0, 1] that fall with the distance between i and j, to the left and to the right.

Constant, one gamma for each head:

    w_ij = gamma^|i - j|.

Chosen by the token, gamma_t for each token t: the tokens lie on a line, where t takes up -log gamma_t, and w_ij follows
from the distance of their centres,

    w_ij = exp(-|p_i - p_j|), p_i = -(log gamma_1 + ... + log gamma_{i-1} + log(gamma_i) / 2),

which is the product of the gammas between i and j, and of the square roots of those of i and j themselves. So w_ii = 1,
w_ij = w_ji, a text read backwards has the same weights, and where all gammas are equal this is gamma^|i - j|.

Within a chunk of tokens the weights are a table. What lies outside it enters through two states: that of causal
attention from the left, without i itself, and its mirror image from the right. No exponent of a gamma is negative, and
time and memory are linear in seq.
"""

from typing import NamedTuple

import paddle
from paddle import Tensor

from paddle_rope.attention.sums import join_chunks, running_states, split_chunks
from paddle_rope.layers import scaled

# A text up to this length is one table of weights; longer ones are cut into chunks.
_DIRECT = 256
_CHUNK = 128
# Lower bound of the gammas of tokens, so that their logarithm is finite.
_SMALLEST_GAMMA = 1e-12


class Side(NamedTuple):
    """What the sums over one side of the chunks need."""

    from_state: Tensor  # from the state of the chunks on that side to each token, [.., .., .., size, 1]
    to_state: Tensor  # from each token to the end of its chunk on the other side, alike
    keep: Tensor  # from one end of a chunk to the other, [.., .., .., 1, 1]


class DecayWeights(NamedTuple):
    """w_ij of a batch. Axes are batch, heads, chunks, each of which may be 1, and those of a chunk."""

    seq: int  # tokens; -1 where a static graph does not know it
    size: int  # tokens of a chunk; seq if there is one alone
    within: Tensor  # between the tokens of a chunk, [.., .., .., size, size]
    sides: tuple[Side, ...]  # the left one and the right one; none if there is one chunk alone

    def sums(self, phi_q: Tensor, phi_k: Tensor, v: Tensor) -> Tensor:
        """s_i = sum_j w_ij (phi_q_i . phi_k_j) v_j; features and values ``[batch, heads, seq, size]``."""
        phi_q, phi_k, v = (_split(x, self.size, self.seq) for x in (phi_q, phi_k, v))
        sums = paddle.matmul(scaled(paddle.matmul(phi_q, phi_k, transpose_y=True), self.within), v)
        for side, reverse in zip(self.sides, (False, True)):
            updates = paddle.matmul(scaled(phi_k, side.to_state), v, transpose_x=True)
            states = running_states(updates, side.keep, reverse)
            sums = sums + paddle.matmul(scaled(phi_q, side.from_state), states)
        return sums.squeeze(2) if self.size == self.seq else join_chunks(sums, self.seq)


def two_sided_decay(
    decay: Tensor, like: Tensor, segment_ids: Tensor | None = None, chunk_size: int | None = None
) -> DecayWeights:
    """The weights of a batch.

    Args:
        decay: gamma ``[heads]``, or ``[batch, heads, seq]`` of each token, in (0, 1].
        like: ``[batch, heads, seq, size]``, whose length and dtype are those of the sums. Where a static graph does not
            know the length, one table has the weights of all tokens, quadratic in seq.
        segment_ids: integer ``[batch, seq]``, equal ids side by side: w_ij = 0 between different ids.
        chunk_size: any positive number; None for one that is fast.
    """
    seq = like.shape[2]
    size = seq if seq <= (chunk_size or _DIRECT) else (chunk_size or _CHUNK)  # where seq is -1, too, one table
    decay = decay.astype(like.dtype)
    if len(decay.shape) == 1:
        within, from_start, to_end, keep = _constant(decay, size if size >= 0 else paddle.shape(like)[2])
    else:
        within, from_start, to_end, keep = _by_token(_split(decay.unsqueeze(-1), size, seq))
    left, right = Side(from_start, to_end, keep), Side(to_end, from_start, keep)
    if segment_ids is not None:
        ids = _split(segment_ids.unsqueeze([1, 3]), size, seq)
        within = within * (ids == ids.transpose([0, 1, 2, 4, 3])).astype(within.dtype)
        # a state is of the segment at the edge of its chunk, see segment_sums
        first, last = ids[:, :, :, :1], ids[:, :, :, -1:]
        before = paddle.concat([last[:, :, :1], last[:, :, :-1]], axis=2)
        after = paddle.concat([first[:, :, 1:], first[:, :, -1:]], axis=2)
        left = _where(left, ids == before, ids == last, last == before)
        right = _where(right, ids == after, ids == first, first == after)
    return DecayWeights(seq, size, within, () if size == seq else (left, right))


def _constant(gamma, size):
    """gamma ``[heads]`` -> the weights within a chunk, from its start to each token, from each token to its end, from
    start to end. The start lies half a token before the first one."""
    gamma = gamma.reshape([1, -1, 1, 1, 1])
    index = paddle.arange(size).astype(gamma.dtype).unsqueeze(1)
    within = gamma ** (index - index.transpose([1, 0])).abs()
    return within, gamma ** (index + 0.5), gamma ** (size - 0.5 - index), gamma**size


def _by_token(gamma):
    """As :func:`_constant` for gamma ``[batch, heads, chunks, size, 1]`` of each token."""
    lengths = -paddle.log(paddle.clip(gamma, min=_SMALLEST_GAMMA))
    ends = paddle.cumsum(lengths, axis=3)
    centres, whole = ends - lengths / 2, ends[:, :, :, -1:]
    within = paddle.exp(-(centres - centres.transpose([0, 1, 2, 4, 3])).abs())
    return within, paddle.exp(-centres), paddle.exp(centres - whole), paddle.exp(-whole)


def _where(side, *conditions):
    """A side whose weights are 0 where the conditions, one for each, do not hold."""
    return Side(*(weight * condition.astype(weight.dtype) for weight, condition in zip(side, conditions)))


def _split(x, size, seq):
    """``[batch, heads, seq, features]`` -> ``[batch, heads, chunks, size, features]``."""
    return x.unsqueeze(2) if size == seq else split_chunks(x, size)
