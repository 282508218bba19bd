"""The compiled operators as functions, and when they compute."""

import contextlib
import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import Tensor
from paddle.base import core, framework

from paddle_rope.native.build import compiler, library_path, problem_of

VARIABLE = "PADDLE_ROPE_NATIVE"
_TYPES = {
    "l": ctypes.c_int64,
    "i": ctypes.c_int,
    "f": ctypes.c_float,
    "u": ctypes.c_uint32,
    "U": ctypes.c_uint64,
    "p": ctypes.c_void_p,
}
# Arguments of the functions, in the letters above.
_SIGNATURES = {
    "residual_norm_forward": "ll pppp if ufU ppp",
    "residual_norm_backward": "ll pp i ufU pp pppp",
    "dropout": "ll p ufU p",
    "activation_forward": "ll i ppp",
    "activation_backward": "ll i pp pp",
    "softmax_attention_forward": "llll ppli pp i ufU ppp pp",
    "softmax_attention_backward": "llll ppli pp i ufU ppp ppp ppp",
    "linear_attention_forward": "llll ppli p ipi ppp ppp",
    "linear_attention_backward": "llll ppli p ipi ppp ppp p ppp",
    "convolution_forward": "llll pp pp p",
    "convolution_backward": "llll pp pp ppp",
    "span_loss_forward": "lllll ppli p pp pp pp",
    "span_loss_backward": "lllll ppli p pp pp pp p pp",
    "round_to_bfloat16": "ll pp",
    "product_float32": "lll iii ppp",
    "product_bfloat16": "lll iii ppp",
    "adamw_step": "l ppp pppppp ffff",
}
_LEVELS = 1 << 32  # of the random bits of dropout
# paddle.jit.to_static of 2.6 by its defaults runs frames in dynamic mode and fails where it cannot read one.
_TRACER_READS_FRAMES = paddle.__version__.startswith("2.")
_off = 0  # how many blocks of plain_forms are open


@functools.cache
def library() -> Any:
    """The shared library, a ``ctypes.CDLL`` with its functions declared; None where it is turned off or not built, or
    where it is damaged or others may have written it."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        path = library_path()
    except RuntimeError:  # a user without a home
        return None
    libraries = Path(paddle.__file__).parent / "libs"
    products = libraries / "libmklml_intel.so"
    if not path.is_file() or not products.is_file() or problem_of(path):
        return None
    try:
        loaded: Any = ctypes.CDLL(str(path))
        for name, letters in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.argtypes = [_TYPES[letter] for letter in letters.replace(" ", "")]
            function.restype = None
        loaded.set_sgemm(ctypes.cast(ctypes.CDLL(str(products)).cblas_sgemm, ctypes.c_void_p))
    except (OSError, AttributeError):  # it is no library, or lacks a function
        return None
    loaded.has_bfloat16 = _set_gemm_bfloat16(loaded, libraries)
    return loaded


def _set_gemm_bfloat16(loaded, libraries):
    """Whether Paddle's oneDNN has products in bfloat16; then the library calls them."""
    for path in libraries.glob("libdnnl.so*"):
        with contextlib.suppress(OSError, AttributeError):
            loaded.set_gemm_bfloat16(ctypes.cast(ctypes.CDLL(str(path)).dnnl_gemm_bf16bf16f32, ctypes.c_void_p))
            return True
    return False


def state_in_words() -> str:
    """Whether the operators compute on this machine, and if not, why; one line."""
    if os.environ.get(VARIABLE) == "0":
        return f"native operators: off, {VARIABLE}=0"
    try:
        path = library_path()
    except RuntimeError:
        return "native operators: none, the user has no home folder to keep them in"
    if library() is not None:
        return f"native operators: {path}"
    if path.is_file():
        if problem := problem_of(path):
            return f"native operators: none, {problem}; python -m paddle_rope.native builds them again"
        return f"native operators: none, {path} cannot be loaded, or this Paddle has no libmklml_intel.so"
    if compiler() is None:
        return "native operators: none, no C++ compiler found; everything works without them, slower"
    return "native operators: not built; python -m paddle_rope.native builds them"


def computes(*tensors: Tensor | None) -> bool:
    """Whether native operators take these tensors: float32, on CPU, neither in a static graph nor under AMP."""
    if _off or library() is None or not paddle.in_dynamic_mode() or paddle.get_device() != "cpu":
        return False
    if _TRACER_READS_FRAMES and _is_traced(sys._getframe()):
        return False
    attributes = core._get_amp_attrs() if hasattr(core, "_get_amp_attrs") else framework._dygraph_tracer()
    if attributes._amp_level != core.AmpLevel.O0:
        return False
    return all(tensor is None or tensor.dtype == paddle.float32 for tensor in tensors)


def _is_traced(frame):
    while frame is not None:
        if frame.f_code.co_filename.endswith("sot/translate.py"):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def plain_forms() -> Iterator[None]:
    """In this context the plain forms compute, to compare with."""
    global _off
    _off += 1
    try:
        yield
    finally:
        _off -= 1


def address(tensor: Tensor | None) -> int | None:
    """Where the numbers of a contiguous tensor are; null for None."""
    return None if tensor is None else tensor.data_ptr()


def dense(tensor: Tensor) -> Tensor:
    """The tensor, copied if it is a view whose numbers do not stand side by side."""
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def dropout_arguments(p: float) -> tuple[int, float, int]:
    """Threshold, scale and seed of a dropout with probability p < 1; (0, 1, 0) for 0.

    The seed is drawn from numpy's global generator, as the mask of the plain :class:`~paddle_rope.layers.Dropout` is.
    """
    threshold = min(round(p * _LEVELS), _LEVELS - 1)
    if not threshold:
        return 0, 1.0, 0
    return threshold, _LEVELS / (_LEVELS - threshold), int.from_bytes(np.random.bytes(8), "little")
