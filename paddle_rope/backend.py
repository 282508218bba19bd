"""What devices, static graphs and versions of Paddle need, so that the equations elsewhere need no branch for them."""

import contextlib
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn
from paddle.base import core, framework
from paddle.nn.functional.flash_attention import flash_attn_unpadded

Function = TypeVar("Function", bound=Callable[..., Any])

_KEPT = 64  # results of a remembered function


def computes_on_cpu() -> bool:
    """Whether operators run on a CPU here, outside of static graphs."""
    # not x.place, which the tracing of to_static in paddle 3.x cannot read
    return paddle.in_dynamic_mode() and paddle.get_device() == "cpu"


# sizes and constants


@paddle.jit.not_to_static
def is_known(*sizes: int | Tensor) -> bool:
    """Whether sizes are known: those that a static graph does not know are -1, or tensors where to_static rewrites."""
    return all(isinstance(size, int) and size >= 0 for size in sizes)


@paddle.jit.not_to_static
def length_of(x: Tensor, axis: int) -> int | Tensor:
    """The size of an axis; a tensor where a static graph does not know it."""
    # cast, because CPU graphs of paddle 2.6.2 cannot take the shape in half precision
    return x.shape[axis] if x.shape[axis] >= 0 else paddle.shape(at_least_float32(x)[0])[axis]


@paddle.jit.not_to_static
def places_along(x: Tensor, axis: int) -> int | Tensor:
    """The positions along an axis for :meth:`~paddle_rope.RotaryPositionEmbedding.cos_sin`: their number; 0, 1, 2, ...
    where a static graph does not know it."""
    length = length_of(x, axis)
    return length if isinstance(length, int) else paddle.arange(length)


def values_on_cpu(x: Tensor | npt.ArrayLike) -> np.ndarray | None:
    """The values, for checks; None in static graphs, and on a GPU, where reading them would wait for it."""
    if computes_on_cpu():
        return x.numpy() if isinstance(x, Tensor) else np.asarray(x)
    return None


def remembered(function: Function) -> Function:
    """A decorator for tensors that all layers or steps compute alike, such as a mask or a table: the last 64 are kept,
    by arguments and device, and must not be changed in place. A tensor among the arguments stands for itself as long as
    it lives unchanged. With gradients, and in static graphs, nothing is kept.

    >>> ones, as_factor = paddle.ones([1, 3], "bool"), remembered(lambda mask, dtype: mask.astype(dtype))
    >>> as_factor(ones, "float32") is as_factor(ones, "float32")
    True
    """
    kept: dict[tuple, tuple] = {}

    @paddle.jit.not_to_static  # paddle 2.6.2 cannot rewrite it
    @functools.wraps(function)
    def call(*arguments):
        tensors = [one for one in arguments if isinstance(one, Tensor)]
        if not paddle.in_dynamic_mode() or not all(one.stop_gradient for one in tensors):
            return function(*arguments)
        values = [(id(one), one.inplace_version) if isinstance(one, Tensor) else one for one in arguments]
        key = paddle.get_device(), *values
        if (found := kept.get(key)) is None:
            found = kept[key] = (function(*arguments),)
            for one in tensors:
                weakref.finalize(one, kept.pop, key, None)  # before another tensor gets its id
            for oldest in [*kept][:-_KEPT]:
                kept.pop(oldest, None)
        return found[0]

    return call  # type: ignore[return-value]


@remembered
def as_factor(mask: Tensor, ndim: int, dtype: paddle.dtype) -> Tensor:
    """A mask ``[batch, seq]`` as a factor of tensors with ``ndim`` axes: 1 or 0, ``[batch, seq, 1, ...]``."""
    return mask.astype(dtype).unsqueeze(list(range(2, ndim)))


def padded(x: Tensor, axis: int, before: int | Tensor = 0, after: int | Tensor = 0) -> Tensor:
    """``x`` with ``before`` and ``after`` zeros added along an axis; counts unknown to a static graph are tensors."""
    if paddle.in_dynamic_mode():  # in graphs, oneDNN of Paddle Inference pads wrongly
        counts = [0] * (2 * x.ndim)
        counts[2 * axis : 2 * axis + 2] = before, after
        return F.pad(x, counts) if before or after else x

    def zeros(count):
        if isinstance(count, int) and count == 0:
            return []
        shape = [paddle.shape(x)[i] if size < 0 else size for i, size in enumerate(x.shape)]
        return [paddle.zeros([*shape[:axis], count, *shape[axis + 1 :]], x.dtype)]

    return paddle.concat([*zeros(before), x, *zeros(after)], axis=axis)


def scaled(x: Tensor, factor: Tensor) -> Tensor:
    """``x`` times a factor (numbers or a bool mask) that broadcasts to the shape of ``x``."""
    return x * expanded(as_dtype(factor, x.dtype), x.shape)


def expanded(x: Tensor, shape: Sequence[int]) -> Tensor:
    """``x`` with this shape on CPU, where broadcasting is slow; elsewhere ``x``, which broadcasts to it."""
    return x.expand(shape) if computes_on_cpu() else x


def by_complex_numbers(turned: Function) -> Function:
    """A decorator for the rotation of pairs, ``(x, cos, sin, layout)``: on CPU adjacent pairs are multiplied as complex
    numbers, which takes a quarter of the time."""

    @functools.wraps(turned)
    def turn(x, cos, sin, layout):
        if layout != "interleaved" or not computes_on_cpu():
            return turned(x, cos, sin, layout)
        pairs, turning, rest = cos.shape[-1], x, []
        if 2 * pairs < x.shape[-1]:
            turning, rest = x[..., : 2 * pairs], [x[..., 2 * pairs :]]
        turning = turning.reshape([*x.shape[:-1], pairs, 2])
        turning = turning.contiguous()  # of a view with a strided last axis, which as_complex cannot read
        y = paddle.as_real(paddle.as_complex(turning) * _phases(cos, sin, tuple(x.shape[2:-1]), x.dtype))
        y = y.reshape([*x.shape[:-1], 2 * pairs])
        return paddle.concat([y, *rest], axis=-1) if rest else y

    return turn  # type: ignore[return-value]


@remembered
def _phases(cos, sin, between, dtype):
    """cos + i sin with these axes between seq and the pairs: broadcasting an axis in the middle is slow on CPU."""
    phases = paddle.complex(as_dtype(cos, dtype), as_dtype(sin, dtype))
    if not between:
        return phases
    last = phases.ndim - 1
    phases = phases.unsqueeze(list(range(last, last + len(between))))
    return phases.expand([*phases.shape[:last], *between, phases.shape[-1]])


# protection from lower precision


def is_amp_on() -> bool:
    """Whether AMP casts here; static graphs of paddle 2.6.2 do not know it while they are traced."""
    attributes = core._get_amp_attrs() if hasattr(core, "_get_amp_attrs") else framework._dygraph_tracer()
    return attributes is not None and attributes._amp_level.value > 0


def without_amp() -> contextlib.AbstractContextManager:
    """A context in which AMP casts nothing."""
    return paddle.amp.auto_cast(enable=False) if is_amp_on() else contextlib.nullcontext()


def at_least_float32(*tensors: Tensor) -> list[Tensor]:
    """The tensors, with float16 and bfloat16 cast to float32."""
    return [x.astype("float32") if x.dtype in (paddle.float16, paddle.bfloat16) else x for x in tensors]


def as_dtype(x: Tensor, dtype: paddle.dtype) -> Tensor:
    """``x`` in a dtype; paddle 2.6.2 copies it if it has that already."""
    return x if x.dtype == dtype else x.astype(dtype)


@remembered
def float64_tensor(values: tuple[float, ...]) -> Tensor:
    """Constants as a float64 tensor; in static graphs, where paddle 2.6.2 rounds constants to float32, a sum of two."""
    array = np.array(values)
    if paddle.in_dynamic_mode():
        return paddle.to_tensor(array)
    near = array.astype(np.float32)
    rest = (array - near).astype(np.float32)
    return paddle.to_tensor(near).astype("float64") + paddle.to_tensor(rest).astype("float64")


class Float32Layer(nn.Layer):
    """A layer that stays float32 if ``model.to(dtype=...)`` or ``paddle.amp.decorate`` casts a model to half precision;
    ``model.astype`` casts it."""

    def __init__(self) -> None:
        super().__init__()
        # paddle.amp.decorate checks this before it casts a layer: 3.x reads the first name, 2.6 the second.
        self._cast_to_low_precision = self._cast_to_low_precison = False

    def _apply(self, func, device, dtype, blocking, include_sublayers=True):
        is_half = str(dtype).rpartition(".")[2] in ("float16", "bfloat16")  # a name or a dtype, "paddle.float16"
        super()._apply(func, device, None if is_half else dtype, blocking, include_sublayers)


# attention on CPU and by the fused kernels of a GPU

# Smaller weights, which are lost in a float32 sum, become 0. Paddle's softmax on CPU leaves exp(-64) at masked keys;
# gradients that small underflow to subnormal numbers, which make the matrix products of backward many times slower.
_SMALLEST_WEIGHT = 1e-20
_LARGEST_HEAD, _HEAD_STEP = 256, 8  # sizes of heads that flash attention takes
_OLDEST_GPU = 80  # compute capability times ten


def computable(*tensors: Tensor) -> Sequence[Tensor]:
    """The tensors, on CPU in float32 instead of half precision, in which Paddle cannot multiply matrices there."""
    return at_least_float32(*tensors) if computes_on_cpu() else tensors


def with_hidden(scores: Tensor, hidden: Tensor) -> Tensor:
    """The scores plus ``hidden``, 0 or :func:`masked_score`. On CPU in place of them, because Paddle's softmax leaves
    exp(-64) at masked keys there, and so a gradient."""
    if not computes_on_cpu():
        return scores + hidden
    hidden = hidden.expand(scores.shape)
    return paddle.where(hidden == 0, scores, hidden)


def without_subnormals(weights: Tensor) -> Tensor:
    """The weights of softmax, on CPU with 0 for those that are lost in a sum."""
    return F.thresholded_relu(weights, _SMALLEST_WEIGHT) if computes_on_cpu() else weights


def masked_score(dtype: paddle.dtype) -> float:
    """What is added to the scores of masked keys: finite in ``dtype`` also after kernels multiply it by log2(e), and
    below any real score, so that these keys get no weight."""
    return -3e4 if dtype == paddle.float16 else -1e30


def fits_fused_attention(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether flash attention supports these: half precision with a common head_dim, on a GPU of compute capability 8.0
    (Ampere) or newer, and not in a static graph."""
    # not q.place, which the tracing of to_static in paddle 3.x cannot read
    if not paddle.in_dynamic_mode() or not paddle.get_device().startswith("gpu") or not _fits_fused_shapes(q, k, v):
        return False
    major, minor = paddle.device.cuda.get_device_capability()
    return 10 * major + minor >= _OLDEST_GPU and q.dtype in (paddle.float16, paddle.bfloat16)


def _fits_fused_shapes(q, k, v):
    head_dim = q.shape[-1]
    return head_dim <= _LARGEST_HEAD and head_dim % _HEAD_STEP == 0 and head_dim == k.shape[-1] == v.shape[-1]


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, added: Tensor | None, dropout: float, causal: bool = False
) -> Tensor:
    """Softmax attention by a kernel that never stores the weights, of ``[batch, seq, heads, size]``; ``added`` to the
    scores, ``[batch or 1, 1, 1 or seq, seq]``, hides keys by finite numbers, so that no row is NaN."""
    if added is not None:
        added = added.expand([q.shape[0], *added.shape[1:]])
    with without_amp():  # AMP would cast the mask to another dtype than q
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=added, dropout_p=dropout, is_causal=causal, training=dropout > 0
        )


def fused_attention_of_runs(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor, dropout: float, causal: bool
) -> Tensor:
    """:func:`fused_attention` within the runs of tokens that ``cu_seqlens`` bounds. The longest run is assumed to fill
    a row, because its length is not known on the host."""
    rows, seq = [x.flatten(0, 1) for x in (q, k, v)], k.shape[1]
    with without_amp():
        found, _ = flash_attn_unpadded(
            *rows, cu_seqlens, cu_seqlens, seq, seq, scale=q.shape[-1] ** -0.5,
            dropout=dropout, causal=causal, training=dropout > 0,
        )  # fmt: skip
    return found.reshape(q.shape)


def fits_fused_window(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether a fused kernel attends within a window: :func:`fits_fused_attention`, and Paddle 3."""
    return hasattr(F, "flashmask_attention") and fits_fused_attention(q, k, v)


def fused_window_attention(q: Tensor, k: Tensor, v: Tensor, window: int, dropout: float, causal: bool) -> Tensor:
    """:func:`fused_attention` to keys at a distance of at most ``window``."""
    with without_amp():
        return F.flashmask_attention(q, k, v, dropout=dropout, causal=causal, window_size=window)
