"""The compiled operators as functions."""

import contextlib
import ctypes
import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.native.build import compiler, foreign, library_path

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
    "softmax_attention": "llll ppli pp i ufU ppp pp p ppp",
    "linear_attention": "llll ppli p ipi ppp ppp p ppp",
    "convolution_forward": "lllll pp pp p",
    "convolution_backward": "lllll pp pp ppp",
    "span_loss": "lllll ppli p pp pp pp p pp",
    "round_to_bfloat16": "l pp",
    "product_float32": "lll ii ppp",
    "product_bfloat16": "lll ii ppp",
    "adamw_step": "l ppp pppppp ffff",
}
_LEVELS = 1 << 32  # of the random bits of dropout


@functools.cache
def library() -> Any:
    """The shared library, a ``ctypes.CDLL`` with its functions declared; None where it is turned off or not built, or
    where others may have written it."""
    if os.environ.get(VARIABLE) == "0":
        return None
    try:
        path = library_path()
    except RuntimeError:  # a user without a home
        return None
    libraries = Path(paddle.__file__).parent / "libs"
    products = libraries / "libmklml_intel.so"
    if not path.is_file() or not products.is_file() or foreign(path):
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
        problem = foreign(path) or f"{path} cannot be loaded, or this Paddle has no libmklml_intel.so"
        return f"native operators: none, {problem}; python -m paddle_rope.native builds them anew where that is deleted"
    if compiler() is None:
        return "native operators: none, no C++ compiler found; everything works without them, slower"
    return "native operators: not built; python -m paddle_rope.native builds them"


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library; tensors and arrays are passed as addresses, so they are contiguous."""
    getattr(library(), name)(*map(_address, arguments))


def _address(argument):
    if isinstance(argument, Tensor):
        return argument.data_ptr()
    return argument.ctypes.data if isinstance(argument, np.ndarray) else argument


def dense(tensor: Tensor | None) -> Tensor | None:
    """The tensor, copied if it is a view whose numbers are not contiguous."""
    return tensor if tensor is None or tensor.is_contiguous() else tensor.contiguous()


def dropout_arguments(p: float) -> tuple[int, float, int]:
    """Threshold, scale and seed of a dropout with probability p < 1, the seed from numpy's global generator."""
    threshold = min(round(p * _LEVELS), _LEVELS - 1)
    if not threshold:
        return 0, 1.0, 0
    return threshold, _LEVELS / (_LEVELS - threshold), int.from_bytes(np.random.bytes(8), "little")
