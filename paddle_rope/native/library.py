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


def library() -> Any:
    """The shared library, a ``ctypes.CDLL`` with its functions declared; None where :func:`state_in_words` says why."""
    return loaded()[0]


def state_in_words() -> str:
    """Whether the operators compute on this machine, and if not, why; one line."""
    return f"native operators: {loaded()[1]}"


@functools.cache
def loaded() -> tuple[Any, str]:
    """The library, or None, and where it is, or why there is none; what others may have written is not loaded."""
    if os.environ.get(VARIABLE) == "0":
        return None, f"off, {VARIABLE}=0"
    try:
        path = library_path()
    except RuntimeError:
        return None, "none, the user has no home folder to keep them in"
    if not path.is_file():
        if compiler() is None:
            return None, "none, no C++ compiler found; everything works without them, slower"
        return None, "not built; python -m paddle_rope.native builds them"
    problem = foreign(path)
    if problem is None:
        try:
            return _load(path), str(path)
        except (OSError, AttributeError):  # it is no library, or lacks a function
            problem = f"{path} cannot be loaded, or this Paddle has no libmklml_intel.so"
    return None, f"none, {problem}; python -m paddle_rope.native builds them anew where that is deleted"


def _load(path):
    """The library at a path, with the products of Paddle's own libraries; those in bfloat16 where oneDNN has them."""
    found: Any = ctypes.CDLL(str(path))
    for name, letters in _SIGNATURES.items():
        function = getattr(found, name)
        function.argtypes = [_TYPES[letter] for letter in letters.replace(" ", "")]
        function.restype = None
    libraries = Path(paddle.__file__).parent / "libs"
    products = ctypes.CDLL(str(libraries / "libmklml_intel.so"))
    found.set_sgemm(ctypes.cast(products.cblas_sgemm, ctypes.c_void_p))
    found.has_bfloat16 = False
    for one in libraries.glob("libdnnl.so*"):
        with contextlib.suppress(OSError, AttributeError):
            found.set_gemm_bfloat16(ctypes.cast(ctypes.CDLL(str(one)).dnnl_gemm_bf16bf16f32, ctypes.c_void_p))
            found.has_bfloat16 = True
    return found


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
