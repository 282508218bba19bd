"""Rotary position embedding (RoPE).

Sources: Su, https://kexue.fm/archives/8265, eq. (11)-(13); Su et al. 2021, arXiv 2104.09864, eq. (13)-(15), (34).
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_rope.backend import (
    Float32Layer,
    as_dtype,
    at_least_float32,
    by_complex_numbers,
    float64_tensor,
    is_known,
    places_along,
    remembered,
    without_amp,
)
from paddle_rope.options import ROTARY_LAYOUT
from paddle_rope.rotary_frequencies import FrequencyScaling, check_even, head_frequencies

_SHORTEST_TABLE = 512  # rows of cosines and sines
_LARGEST_OFFSET = 1 << 16  # larger ones are computed without a table
_FLOATING = (paddle.float16, paddle.bfloat16, paddle.float32, paddle.float64)


def interleaved_to_half(head_dim: int) -> np.ndarray:
    """The order of features that turns the layout "interleaved" into "half": 0, 2, 4, ..., 1, 3, 5, ...; head_dim is
    even.

    With p = ``interleaved_to_half(d)``: ``half(x[..., p])`` equals ``interleaved(x)[..., p]``. Applied to the columns
    of the query and key projections, head by head, it carries weights from one layout to the other with the same
    attention scores; ``np.argsort(p)`` converts back. If only the first ``rotary_dim`` features turn, reorder these.

    >>> interleaved_to_half(6)
    array([0, 2, 4, 1, 3, 5])
    """
    check_even("head_dim", head_dim)
    return np.arange(head_dim).reshape(-1, 2).T.reshape(-1)


class Rope(NamedTuple):
    """The rotation of a text's vectors as cosines and sines: ``apply_rotary(x, *rope)`` applies it.

    >>> rope = RotaryPositionEmbedding(4).cos_sin(2)
    >>> tuple(rope.cos.shape), rope.layout
    ((2, 2), 'interleaved')
    """

    cos: Tensor  # cosines of the phases m theta_i, [seq, rotary_dim / 2] or [batch, seq, rotary_dim / 2]
    sin: Tensor  # their sines
    layout: str = "interleaved"

    def inverse(self) -> "Rope":
        """The inverse rotation; with YaRN it also divides by the amplitude."""
        with without_amp():
            square = self.cos * self.cos + self.sin * self.sin  # the amplitude squared
            return Rope(self.cos / square, -self.sin / square, self.layout)


def apply_rotary(
    x: Tensor, cos: Tensor | None = None, sin: Tensor | None = None, layout: str = "interleaved"
) -> Tensor:
    """Rotate the pairs of features of ``x``: (a, b) -> (a cos - b sin, a sin + b cos). Without cos and sin, x itself.

    Computed in float32 (float64 for float64 inputs), even under AMP.

    Args:
        x: ``[batch, seq, ..., head_dim]``, any floating dtype.
        cos, sin: ``[seq, rotary_dim / 2]`` or ``[batch or 1, seq, rotary_dim / 2]``; the first ``rotary_dim`` features
            are rotated, the rest pass unchanged.
        layout: which features form pair i: ``"interleaved"`` (2i, 2i+1) or ``"half"`` (i, i + rotary_dim/2).

    Raises ValueError if ``x`` is not floating, or for an unknown layout or shapes that do not match.

    >>> x = paddle.ones([1, 3, 2, 4])  # [batch, seq, heads, head_dim]
    >>> rope = RotaryPositionEmbedding(4).cos_sin(3)
    >>> bool((apply_rotary(x, *rope) == RotaryPositionEmbedding(4)(x)).all())
    True
    """
    if cos is None or sin is None:
        return x
    rotary_dim = 2 * cos.shape[-1]
    _check_fit(x, cos, sin, rotary_dim)
    ROTARY_LAYOUT.check("layout", layout)
    (wide,) = at_least_float32(x)
    with without_amp():
        return as_dtype(_turned(wide, cos, sin, layout), x.dtype)


@by_complex_numbers
def _turned(x, cos, sin, layout):
    """x cos + (J x) sin, where J turns pairs by 90 degrees, (a, b) -> (-b, a); the table of sines has the sign."""
    partners = paddle.index_select(x, _features(x.shape[-1], cos.shape[-1], layout, x.dtype)[1], axis=-1)
    shape = x.shape[-1], x.ndim - 3, layout, x.dtype
    return x * _for_features(cos, *shape, False) + partners * _for_features(sin, *shape, True)


@remembered
def _features(size, pairs, layout, dtype):
    """For each feature the index of its pair, the other feature of the pair, and the sign of its sine, -1 for the first
    of a pair; beyond the pairs any pair, itself and 0: ``[size]`` each."""
    index, apart = np.arange(size), 1 if layout == "interleaved" else pairs
    sign = np.where(index < 2 * pairs, np.where(index // apart % 2, 1, -1), 0)
    pair = index // 2 % pairs if layout == "interleaved" else index % pairs
    return paddle.to_tensor(pair), paddle.to_tensor(index - sign * apart), paddle.to_tensor(sign, dtype=dtype)


@remembered
def _for_features(table, size, between, layout, dtype, is_sine):
    """A value for each feature instead of each pair, beyond the pairs cos = 1 and sin = 0, and axes of size 1
    ``between`` seq and the features."""
    pairs = table.shape[-1]
    pair, _, sign = _features(size, pairs, layout, dtype)
    table = paddle.index_select(as_dtype(table, dtype), pair, axis=-1)
    if is_sine:
        table = table * sign
    elif 2 * pairs < size:
        table = table * sign.abs() + (1 - sign.abs())
    return table.unsqueeze(list(range(table.ndim - 1, table.ndim - 1 + between))) if between else table


def _check_fit(x, cos, sin, rotary_dim):
    if x.ndim < 3 or rotary_dim > x.shape[-1]:
        raise ValueError(f"x must be [batch, seq, ..., at least {rotary_dim} features], got {list(x.shape)}")
    if x.dtype not in _FLOATING:  # the result has the dtype of x, which would round it
        raise ValueError(f"x must be floating, got {x.dtype}; rotate x.astype('float32')")
    known = is_known(*x.shape, *cos.shape)
    if cos.ndim != sin.ndim or (known and cos.shape != sin.shape):
        raise ValueError(f"cos and sin must have the same shape, got {list(cos.shape)} and {list(sin.shape)}")
    if cos.ndim not in (2, 3) or (known and cos.shape[-2] != x.shape[1]):
        found = f"got {list(cos.shape[:-1])} for x {list(x.shape)}, which is [batch, seq, ..., features]"
        raise ValueError(f"positions must be [seq] or [batch, seq] with seq = {x.shape[1]}, {found}")
    if known and cos.ndim == 3 and cos.shape[0] not in (1, x.shape[0]):
        raise ValueError(f"positions {list(cos.shape[:-1])} do not fit the batch of x {list(x.shape)}")


class RotaryPositionEmbedding(Float32Layer):
    r"""Rotates the vector at position m by the angles m * theta_i, so that dot products see relative position only.

    Each pair of features is read as the complex number a + i b and multiplied by exp(i m theta_i),
    theta_i = base^(-2i/rotary_dim). With R_m this (orthogonal) map, <R_m q, R_n k> = <q, R_{n-m} k>.

    Phases are computed in float64. The table of cosines and sines grows on demand, so there is no maximum length, and
    checkpoints do not contain it. Static graphs of unknown length compute the phases. Pairs are rotated as real
    numbers, but adjacent ones on CPU, outside of static graphs, as complex numbers.

    Args:
        head_dim: size of the last axis of the inputs.
        base: the 10000 of the equation; larger bases turn more slowly.
        layout: as in :func:`apply_rotary`: ``"interleaved"``, as in RoFormer, or ``"half"``, as in LLaMA.
            :func:`interleaved_to_half` converts weights.
        rotary_dim: the first ``rotary_dim`` features are rotated, the rest pass unchanged; None for all.
        scaling: :class:`~paddle_rope.LinearScaling`, :class:`~paddle_rope.NTKScaling` or
            :class:`~paddle_rope.YaRNScaling` of the frequencies for texts longer than in training; None for none.
        learned: make theta a float32 parameter ``theta`` ``[rotary_dim / 2]``, initialized to the fixed frequencies
            and saved in checkpoints. It stays float32 when the model is cast to half precision.

    Raises ValueError if an argument is out of range, or the number of rotated features is odd.

    >>> rotary = RotaryPositionEmbedding(64)
    >>> tuple(rotary(paddle.ones([2, 100, 4, 64])).shape)  # [batch, seq, heads, head_dim]
    (2, 100, 4, 64)
    """

    def __init__(
        self,
        head_dim: int,
        base: float = 10000.0,
        layout: str = "interleaved",
        rotary_dim: int | None = None,
        scaling: FrequencyScaling | None = None,
        learned: bool = False,
    ) -> None:
        super().__init__()
        ROTARY_LAYOUT.check("layout", layout)
        if scaling is not None and not isinstance(scaling, FrequencyScaling):
            raise ValueError(f"scaling must be None, LinearScaling, NTKScaling or YaRNScaling, got {scaling!r}")
        theta = head_frequencies(head_dim, float(base), rotary_dim, scaling)
        self.head_dim, self.rotary_dim, self.base, self.layout = head_dim, 2 * len(theta), float(base), layout
        self.scaling, self.learned = scaling, learned
        self.amplitude = scaling.amplitude if scaling else 1.0
        if learned:
            start = nn.initializer.Assign(theta.astype(np.float32))
            self.theta = self.create_parameter([len(theta)], dtype="float32", default_initializer=start)
        else:
            self.theta = theta  # [rotary_dim / 2], float64
            self.key = tuple(theta)  # of its tables

    def forward(self, x: Tensor, offset: int = 0, positions: Tensor | None = None, inverse: bool = False) -> Tensor:
        """Rotate ``x`` ``[batch, seq, ..., head_dim]`` of any floating dtype; ``offset`` and ``positions`` are as in
        :meth:`cos_sin`. ``inverse`` undoes the rotation (negative angles; division by YaRN's amplitude).
        """
        if x.ndim < 3 or x.shape[-1] != self.head_dim:
            raise ValueError(f"x must be [batch, seq, ..., {self.head_dim}], got {list(x.shape)}")
        positions = places_along(x, 1) if positions is None else positions
        rope = self.cos_sin(positions, offset, "float64" if x.dtype == paddle.float64 else "float32")
        rope = rope.inverse() if inverse else rope
        return apply_rotary(x, rope.cos, rope.sin, rope.layout)  # not *rope: to_static of paddle 2.6.2 cannot read it

    def cos_sin(self, positions: int | Tensor, offset: int = 0, dtype: str = "float32") -> Rope:
        """Cosines and sines ``[(batch,) seq, rotary_dim / 2]`` of the rotation, times the amplitude.

        Args:
            positions: the number of vectors, for positions 0, 1, 2, ...; or a tensor ``[seq]`` or ``[batch, seq]``,
                integer or real, of any values (for left padding or packed texts, for example).
            offset: integer, added to the positions.
            dtype: dtype of the result, ``"float32"`` or ``"float64"``.
        """
        if not isinstance(offset, Integral):
            raise ValueError(f"offset must be an integer, got {offset!r}; add it to a tensor of real positions")
        if isinstance(positions, Integral):
            positions = int(positions)  # of numpy, too
            if positions < 0:
                raise ValueError(f"positions must be a number of vectors, 0 or more, or a tensor, got {positions}")
        with without_amp():
            if isinstance(positions, int) and 0 <= offset <= _LARGEST_OFFSET and not self.learned:
                end = int(offset) + positions
                tables = _table(self.key, max(_SHORTEST_TABLE, 1 << (end - 1).bit_length()), dtype)
                cos, sin = (table[offset:end].clone() for table in tables)  # a slice may be a view of the table
            else:
                cos, sin = self._at(positions, offset, dtype)
            if self.amplitude != 1:
                gain = paddle.full([1], self.amplitude, dtype)
                cos, sin = cos * gain, sin * gain
        return Rope(cos, sin, self.layout)

    def _at(self, positions, offset, dtype):
        """cos and sin of the phases at positions."""
        if isinstance(positions, int):
            positions = paddle.arange(positions)
        if positions.ndim not in (1, 2):
            raise ValueError(f"positions must be [seq] or [batch, seq], got {list(positions.shape)}")
        positions = positions.astype("float64")
        if offset:  # as a tensor: paddle 2.6.2 rounds numbers added to a tensor to float32
            positions = positions + paddle.full([1], offset, "int64").astype("float64")
        theta = self.theta.astype("float64") if self.learned else float64_tensor(self.key)
        phases = positions.unsqueeze(-1) * theta
        return paddle.cos(phases).astype(dtype), paddle.sin(phases).astype(dtype)


@remembered
def _table(theta, rows, dtype):
    """cos and sin of m theta for m = 0 .. rows - 1: ``[rows, rotary_dim / 2]`` each."""
    rotation = np.exp(1j * np.outer(np.arange(rows, dtype=np.float64), theta))
    return tuple(paddle.to_tensor(x.astype(dtype)) for x in (rotation.real, rotation.imag))
