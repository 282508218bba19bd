"""The position embeddings that RoPE is compared with: sinusoidal, learned, and ALiBi."""

from collections.abc import Sequence

import paddle
from paddle import Tensor

from paddle_rope.backend import float64_tensor
from paddle_rope.layers import Embedding
from paddle_rope.rotary_frequencies import rotary_frequencies


def sinusoidal_embedding(positions: Tensor, size: int, base: float = 10000.0) -> Tensor:
    """p_{m, 2i} = sin(m theta_i), p_{m, 2i+1} = cos(m theta_i), theta_i = base^(-2i/size) (arXiv 1706.03762, 3.5).

    ``positions`` m, integer or real, any shape -> float32 ``[*positions.shape, size]``, size even. Phases are computed
    in float64.

    >>> tuple(sinusoidal_embedding(paddle.arange(3), size=4).shape)
    (3, 4)
    """
    phases = positions.astype("float64").unsqueeze(-1) * float64_tensor(tuple(rotary_frequencies(size, base)))
    pairs = paddle.stack([paddle.sin(phases), paddle.cos(phases)], axis=-1)
    return pairs.flatten(-2).astype("float32")


class LearnedPositionEmbedding(Embedding):
    """A trained vector of ``size`` features for each position below ``max_positions``, as in BERT (arXiv 1810.04805).

    Positions are integers of any shape. On CPU, except in static graphs, others raise ValueError.

    >>> embedding = LearnedPositionEmbedding(max_positions=512, size=8)
    >>> tuple(embedding(paddle.arange(10)).shape)
    (10, 8)
    """

    def __init__(self, max_positions: int, size: int) -> None:
        super().__init__(max_positions, size, "learned positions", "; cut the text")


def alibi_slopes(num_heads: int) -> list[float]:
    """The slopes of ALiBi: 2^(-8/n), 2^(-16/n), ... for n heads, n a power of two (arXiv 2108.12409, section 3). For
    another n: the slopes for the largest power of two below it, then every other slope for the next power of two, as
    the authors do.

    >>> alibi_slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    below = 1 << (num_heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * (head + 1) / below) for head in range(below)]
    return slopes + [2.0 ** (-4 * (2 * extra + 1) / below) for extra in range(num_heads - below)]


def alibi_bias(slopes: Sequence[float], query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """The bias that ALiBi adds to the scores: -slope |m - n|, the same in both directions (arXiv 2108.12409, eq. 1).
    For causal attention this is the paper's bias; for bidirectional attention it is the symmetric form.

    Slopes of the heads, positions of queries ``[batch, queries]`` and of keys ``[batch, seq]`` ->
    ``[batch, heads, queries, seq]``.

    >>> positions = paddle.arange(3).unsqueeze(0)
    >>> alibi_bias([0.5], positions, positions)[0, 0, 0].tolist()
    [-0.0, -0.5, -1.0]
    """
    difference = query_positions.unsqueeze(2) - key_positions.unsqueeze(1)
    # not abs, which oneDNN fuses wrongly with the difference
    distance = paddle.maximum(difference, -difference).astype("float32")
    slope = paddle.to_tensor(slopes, dtype="float32").reshape([1, -1, 1, 1])
    return -slope * distance.unsqueeze(1)
