"""Rotary position embedding (RoPE).

Sources: Su, https://kexue.fm/archives/8265, eq. (11)-(13); Su et al. 2021, arXiv 2104.09864, eq. (13)-(15), (34).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_rope.options import ROTARY_LAYOUTS, check_choice
from paddle_rope.precision import Float32Layer, float64_tensor, without_amp
from paddle_rope.rotary_frequencies import FrequencyScaling, check_even, rotary_frequencies

# Tables begin at position 0; further than this beyond what is tabulated, positions are computed by themselves.
_LARGEST_GAP = 4096
# paddle 3.x keeps a view whose last axis is strided, and as_complex refuses it. 2.6 copies by itself, and its
# to_static does not know contiguous().
_RESHAPE_COPIES_VIEWS = paddle.__version__.startswith("2.")


def interleaved_to_half(head_dim: int) -> np.ndarray:
    """The order of features that turns the layout "interleaved" into "half": 0, 2, 4, ..., 1, 3, 5, ...

    With p = ``interleaved_to_half(d)``: ``half(x[..., p])`` equals ``interleaved(x)[..., p]``. Applied to the columns
    of the query and key projections, head by head, it carries weights from one layout to the other with the same
    attention scores; ``np.argsort(p)`` leads back. If only the first ``rotary_dim`` features turn, reorder those only.

    Args:
        head_dim: number of features that turn, positive and even.

    Returns:
        int64 array ``[head_dim]``.

    Raises:
        ValueError: ``head_dim`` is odd or not positive.
    """
    check_even("head_dim", head_dim)
    return np.arange(head_dim).reshape(-1, 2).T.reshape(-1)


class RotaryPositionEmbedding(Float32Layer):
    r"""Rotates the vector at position m by the angles m * theta_i, so that dot products see relative position only.

    Two features, a pair, are read as the complex number a + i b and multiplied by exp(i m theta_i),
    theta_i = base^(-2i/rotary_dim). With R_m this (orthogonal) map, <R_m q, R_n k> = <q, R_{n-m} k>.

    Phases are computed in float64; cosine and sine are used in float32 (float64 for float64 inputs), also under
    AMP. The table grows on demand: no length is too long, and nothing goes into the checkpoint unless ``learned``.
    In static graphs (``paddle.jit.to_static``) phases are computed in the graph, for any length, and the rotation is
    written in real numbers, which inference engines know.

    Args:
        head_dim: size of the last axis of the inputs.
        base: the 10000 of the equation; larger bases turn more slowly.
        layout: which features are pair i: ``"interleaved"`` (2i, 2i+1), as in RoFormer, or ``"half"``
            (i, i + rotary_dim/2), as in LLaMA. :func:`interleaved_to_half` converts weights.
        rotary_dim: the first ``rotary_dim`` features turn, the rest pass unchanged; None for all.
        scaling: :class:`~paddle_rope.LinearScaling`, :class:`~paddle_rope.NTKScaling` or
            :class:`~paddle_rope.YaRNScaling` of the frequencies for texts longer than those of training; None for none.
            YaRN also multiplies what it rotates by its ``amplitude``.
        learned: make theta a float32 parameter ``theta`` ``[rotary_dim / 2]``, which starts at the fixed one
            (rounded to float32) and is in the checkpoint. Half precision of a model leaves it in float32.

    Raises:
        ValueError: the number of features that turn is odd, not positive or more than ``head_dim``; ``base`` is not
            positive; ``layout`` or ``scaling`` is not one of those above.
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
        if rotary_dim is None:
            check_even("head_dim", head_dim)
            rotary_dim = head_dim
        check_even("rotary_dim", rotary_dim)
        if rotary_dim > head_dim:
            raise ValueError(f"rotary_dim must be at most head_dim = {head_dim}, got {rotary_dim}")
        check_choice("layout", layout, ROTARY_LAYOUTS)
        if scaling is not None and not isinstance(scaling, FrequencyScaling):
            raise ValueError(f"scaling must be None, LinearScaling, NTKScaling or YaRNScaling, got {scaling!r}")
        self.head_dim = head_dim
        self.base = float(base)
        self.layout = layout
        self.rotary_dim = rotary_dim
        self.scaling = scaling
        self.learned = learned
        self.amplitude = scaling.amplitude if scaling else 1.0
        theta = scaling.frequencies(rotary_dim, self.base) if scaling else rotary_frequencies(rotary_dim, self.base)
        if learned:
            start = nn.initializer.Assign(theta.astype(np.float32))
            self.theta = self.create_parameter([rotary_dim // 2], dtype="float32", default_initializer=start)
        else:
            self.theta = theta  # [rotary_dim / 2], float64
        self._tables: dict = {}  # cos and sin by dtype and device, [length, rotary_dim / 2]; never saved

    def forward(self, x: Tensor, offset: int = 0, positions: Tensor | None = None, inverse: bool = False) -> Tensor:
        """Rotate ``x``.

        Args:
            x: ``[..., seq, head_dim]``, any floating dtype.
            offset: integer position of the first vector; the others follow.
            positions: ``[seq]`` or ``[batch, seq]``, integer or real, instead of ``offset`` + 0, 1, 2, ...;
                with ``[batch, seq]`` the first axis of ``x`` is the batch. Left padding, packed texts: any numbers.
            inverse: undo the rotation (negative angles; division by YaRN's amplitude).

        Returns:
            Tensor of the shape and dtype of ``x``.

        Raises:
            ValueError: the shapes of ``x``, ``positions`` and ``head_dim`` do not fit, or both ``offset`` and
                ``positions`` are given. In static graphs only what is known there is checked.
        """
        if positions is not None and offset:
            raise ValueError("give either offset or positions, not both")
        self._check(x, positions)
        with without_amp():
            return self._rotate(x, inverse, lambda turning: self._cosine_and_sine(turning, offset, positions))

    @paddle.jit.not_to_static  # whose rewriting of the early return loses what the inner functions refer to
    def at(self, positions: Tensor | None) -> Callable[..., Tensor]:
        """The rotation at fixed ``positions``, a function ``rotate(x, inverse=False)``: phases are computed once.

        For the layers of a model, which all turn by the same angles. (Learned theta is computed anew in each call, so
        that recomputation finds its gradient.) Where it can be written as tables, ``rotate.tables(seq)`` has them, see
        :meth:`tables`, for operators that turn on their own.

        Args:
            positions: ``[seq]`` or ``[batch, seq]``, as in :meth:`forward`; None for 0, 1, 2, ...
        """
        known = {}

        def tables(seq):
            if "tables" not in known:
                known["tables"] = self.tables(seq, positions)
            return known["tables"]

        def with_tables(function: Any) -> Any:
            function.tables = tables
            return function

        def rotate_anew(x, inverse=False):
            return self(x, positions=positions, inverse=inverse)

        if self.learned:
            return rotate_anew
        if positions is None:
            return with_tables(rotate_anew)

        def phases(turning):
            key = f"{turning.dtype} {turning.ndim}"
            if key not in known:
                known[key] = self._cosine_and_sine(turning, 0, positions)
            return known[key]

        def rotate(x, inverse=False):
            self._check(x, positions)
            with without_amp():
                return self._rotate(x, inverse, phases)

        return with_tables(rotate)

    def tables(self, seq: int, positions: Tensor | None = None) -> tuple[Tensor, Tensor, bool] | None:
        """The rotation of ``seq`` vectors as numbers; None where not all features turn, or theta is learned.

        Args:
            seq: number of vectors.
            positions: as in :meth:`forward`.

        Returns:
            cos and sin of the phases (times the amplitude), float32 ``[seq, head_dim / 2]``, or
            ``[batch, seq, head_dim / 2]`` with such positions; whether pairs are interleaved.
        """
        if self.learned or self.rotary_dim < self.head_dim:
            return None
        if positions is None:
            tables = self._table(0, seq, "float32")
        else:
            phases = positions.astype("float64").unsqueeze(-1) * float64_tensor(self.theta)
            tables = paddle.cos(phases).astype("float32"), paddle.sin(phases).astype("float32")
        if self.amplitude != 1:
            tables = tuple(table * self.amplitude for table in tables)
        return *tables, self.layout == "interleaved"

    def _check(self, x, positions):
        if x.ndim < 2 or x.shape[-1] != self.head_dim:
            raise ValueError(f"x must be [..., seq, {self.head_dim}], got {list(x.shape)}")
        if positions is None:
            return
        known = paddle.in_dynamic_mode()  # in static graphs sizes are not
        if positions.ndim not in (1, 2) or (known and positions.shape[-1] != x.shape[-2]):
            raise ValueError(
                f"positions must be [seq] or [batch, seq] with seq = {x.shape[-2]}, got {list(positions.shape)}"
            )
        if positions.ndim == 2 and (x.ndim < 3 or (known and positions.shape[0] not in (1, x.shape[0]))):
            raise ValueError(f"positions {list(positions.shape)} do not fit the batch of x {list(x.shape)}")

    def _rotate(self, x, inverse, cosine_and_sine):
        dtype = "float64" if x.dtype == paddle.float64 else "float32"
        turning, rest = x.astype(dtype), None
        if self.rotary_dim < self.head_dim:  # cut after the cast: on CPU Paddle has no gradients of bfloat16 parts
            turning, rest = turning[..., : self.rotary_dim], turning[..., self.rotary_dim :]
        cosine, sine = cosine_and_sine(turning)
        if inverse:
            sine = -sine
        if self.amplitude != 1:
            gain = paddle.full([1], 1 / self.amplitude if inverse else self.amplitude, dtype)
            cosine, sine = cosine * gain, sine * gain
        turn = _turn_half
        if self.layout == "interleaved":
            turn = _turn_interleaved if paddle.in_dynamic_mode() else _turn_interleaved_in_graph
        turned = turn(turning, cosine, sine)
        return (turned if rest is None else paddle.concat([turned, rest], axis=-1)).astype(x.dtype)

    def _table(self, offset, length, dtype):
        """cos and sin of m theta for m = offset .. offset + length - 1: ``[length, rotary_dim / 2]`` each."""
        end = offset + length
        key = f"{dtype} {paddle.get_device()}"
        known = self._tables[key][0].shape[0] if key in self._tables else 0
        if offset < 0 or offset > max(2 * known, _LARGEST_GAP):  # a table up to there would be nearly all unused
            return self._tabulate(np.arange(offset, end), dtype)
        if known < max(end, 1):
            self._tables[key] = self._tabulate(np.arange(max(end, 2 * known, 512)), dtype)
        cosine, sine = self._tables[key]
        return cosine[offset:end], sine[offset:end]

    def _tabulate(self, positions, dtype):
        rotation = np.exp(1j * np.outer(positions.astype(np.float64), self.theta))
        return paddle.to_tensor(rotation.real.astype(dtype)), paddle.to_tensor(rotation.imag.astype(dtype))

    def _cosine_and_sine(self, x, offset, positions):
        """cos and sin of m theta, ``[seq, rotary_dim / 2]`` or ``[batch, 1, ..., seq, rotary_dim / 2]``."""
        if positions is None and not self.learned and paddle.in_dynamic_mode():
            return self._table(offset, x.shape[-2], "float64" if x.dtype == paddle.float64 else "float32")
        if positions is None:
            # not + offset: paddle 2.6.2 rounds numbers added to a tensor to float32
            positions = paddle.arange(paddle.shape(x)[-2]) + paddle.full([1], offset, "int64")
        theta = self.theta.astype("float64") if self.learned else float64_tensor(self.theta)
        phases = positions.astype("float64").unsqueeze(-1) * theta  # [(batch,) seq, rotary_dim / 2]
        if positions.ndim == 2 and x.ndim > 3:
            phases = phases.unsqueeze(list(range(1, x.ndim - 2)))
        return paddle.cos(phases).astype(x.dtype), paddle.sin(phases).astype(x.dtype)

    def extra_repr(self) -> str:
        return (
            f"head_dim={self.head_dim}, base={self.base:g}, layout={self.layout!r}, rotary_dim={self.rotary_dim}, "
            f"scaling={self.scaling}, learned={self.learned}"
        )


def _turn_interleaved(x, cosine, sine):
    """Pairs (2i, 2i+1), as complex numbers: several times faster than real ones on CPU."""
    pairs = x.reshape([*x.shape[:-1], x.shape[-1] // 2, 2])
    if not _RESHAPE_COPIES_VIEWS:
        pairs = pairs.contiguous()
    return paddle.as_real(paddle.as_complex(pairs) * paddle.complex(cosine, sine)).reshape(x.shape)


def _turn_interleaved_in_graph(x, cosine, sine):
    """As :func:`_turn_interleaved` in real numbers and for unknown sizes."""
    same = [0] * (x.ndim - 1)  # for reshape: sizes as they are
    pairs = x.reshape([*same, x.shape[-1] // 2, 2])
    turned = paddle.stack(_turn(pairs[..., 0], pairs[..., 1], cosine, sine), axis=-1)
    return turned.reshape([*same, x.shape[-1]])


def _turn_half(x, cosine, sine):
    """Pairs (i, i + size/2)."""
    half = x.shape[-1] // 2
    return paddle.concat(_turn(x[..., :half], x[..., half:], cosine, sine), axis=-1)


def _turn(a, b, cosine, sine):
    """Real and imaginary part of (a + i b) (cosine + i sine)."""
    return a * cosine - b * sine, a * sine + b * cosine
