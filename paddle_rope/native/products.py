"""Matrix products in float32 or, on processors that support it, with factors rounded to bfloat16."""

import contextlib
import functools
import math
import os
import platform
import time
import timeit
import weakref
from contextvars import ContextVar

import paddle
from paddle import Tensor

from paddle_rope.machine import processor_flags
from paddle_rope.native.dispatch import FLOAT32, switched_on
from paddle_rope.native.library import call, library, state_in_words

# Linux's names of the x86 instructions that multiply bfloat16. Without them oneDNN is slower than in float32.
_INSTRUCTIONS = ("avx512_bf16", "amx_bf16")
DECISION = "PADDLE_ROPE_BFLOAT16"
_is_rounding = ContextVar("is_rounding", default=False)
_last: ContextVar[tuple] = ContextVar("last", default=(lambda: None, 0, None))  # weakly x, version, rounded(x)


def bfloat16_products() -> contextlib.AbstractContextManager:
    """A context in which linear layers round the factors of their products to bfloat16: 8 bits of mantissa, not 24.

    A factor is changed by at most 2^-8 = 0.4 % of itself. Everything else stays in float32. The products of the
    backward pass are rounded if the forward pass was. The context does not apply to other threads. Raises RuntimeError
    if this machine does not support it (:func:`why_no_bfloat16`).
    """
    if why := why_no_bfloat16():
        raise RuntimeError(why)
    return switched_on(_is_rounding)


def why_no_bfloat16() -> str | None:
    """The reason why this machine has no bfloat16 products, in one line; None if it has them."""
    if library() is None:
        return state_in_words()
    if processor_flags().isdisjoint(_INSTRUCTIONS):
        return f"the processor ({platform.machine()}) has none of {', '.join(_INSTRUCTIONS)}"
    if not library().has_bfloat16:
        return "this Paddle has no libdnnl with products in bfloat16"
    return None


def bfloat16_is_faster() -> bool:
    """Whether bfloat16 products are faster than float32 ones here; call it only if :func:`why_no_bfloat16` is None.

    One product of each kind is timed once in a process. The environment variable ``PADDLE_ROPE_BFLOAT16``, "1" or "0",
    overrides this.
    """
    decision = os.environ.get(DECISION)
    return _is_measured_faster() if decision is None else decision != "0"


@functools.cache
def _is_measured_faster():
    x = paddle.ones([512, 512])  # about 20 ms; bfloat16 takes half the time of float32 or twice as long
    plain, fast = (
        min(timeit.repeat(functools.partial(product, one, one), timer=time.thread_time, repeat=5, number=1))
        for one in (x, rounded(x))
    )
    return fast < plain


def are_rounded() -> bool:
    """Whether products are computed in bfloat16 now, in this thread."""
    return _is_rounding.get()


def rounded(x: Tensor) -> Tensor:
    """Contiguous float32 -> bfloat16, same shape; of a parameter its attribute ``rounded`` if it has been given one."""
    kept = getattr(x, "rounded", None)
    if kept is not None:
        return kept
    last, version, y = _last.get()
    if last() is not x or version != x.inplace_version:
        y = paddle.empty(x.shape, "bfloat16")
        call("round_to_bfloat16", math.prod(x.shape), x, y)
    return y


def to_be_rounded(x: Tensor) -> Tensor | None:
    """Memory for ``rounded(x)``, to be filled by the operator that computes x; None if products are in float32."""
    if not are_rounded():
        return None
    y = paddle.empty(x.shape, "bfloat16")
    _last.set((weakref.ref(x), x.inplace_version, y))
    return y


def product(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """The float32 product of two contiguous tensors, both float32 or both bfloat16, as matrices of their rows.

    ``a`` is ``[..., k]``, or ``[..., m]`` if it is transposed; ``b`` is ``[..., n]``, or ``[..., k]`` if it is. The
    product has the leading axes of ``a`` and n; it is ``[m, n]`` if ``a`` is transposed.
    """
    if transpose_a:
        a, b = a.reshape([-1, a.shape[-1]]), b.reshape([-1, b.shape[-1]])
    if a.dtype in FLOAT32:
        return paddle.matmul(a, b, transpose_a, transpose_b)
    m, k = reversed(rows_and_width(a)) if transpose_a else rows_and_width(a)
    n = rows_and_width(b)[0 if transpose_b else 1]
    c = paddle.empty([m, n] if transpose_a else [*a.shape[:-1], n], "float32")
    call("product_bfloat16", m, n, k, int(transpose_a), int(transpose_b), a, b, c)
    return c


def rows_and_width(x: Tensor) -> tuple[int, int]:
    """The number of rows of a tensor, and of values in a row; a scalar is one row of one value."""
    *leading, width = x.shape or [1]
    return math.prod(leading), width
