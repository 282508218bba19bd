"""An unpickler of tensors that executes nothing.

A pickle is a program: it may name any function of any module and have it called. :class:`TensorUnpickler` knows only
the few names that ``torch.save`` and ``paddle.save`` use for tensors, and answers each with a stand-in defined here.
Any other name ends the reading before it could be called.
"""

import io
import math
import pickle
import re
import reprlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

BFLOAT16 = "bfloat16"  # no numpy type: its bits, as uint16, are the upper half of a float32
TORCH_STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": BFLOAT16,
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
_ALWAYS_READ = 2**16  # bytes, without asking how many are left

_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 80, 80
short = _short.repr  # of any value, so that it fits into a line


class NotTensors(ValueError):
    """A file without readable tensors; the message continues the file's name."""


class ForbiddenPickle(NotTensors):
    """A pickle that asks for something tensors are not made of."""


def _refuse_change(*_):
    raise ForbiddenPickle("changes what it was given")


class _Mapping(dict):
    """Stands in for ``collections.OrderedDict``; its attributes (torch's ``_metadata``) are dropped."""

    def __init__(self, items=()):
        check_keys(items if isinstance(items, dict) else [key for key, _ in items])
        super().__init__(items)

    def __setstate__(self, state):
        pass


class Storage:
    """Stands in for a torch storage: ``flat``, a flat array, or None while only its size is known."""

    __slots__ = ("flat",)

    def __init__(self, flat=None):
        self.flat = flat

    __setstate__ = _refuse_change


class Array:
    """Stands in for a numpy array or a torch tensor; ``array`` is None until its state has been read."""

    __slots__ = ("array",)

    def __init__(self, array=None):
        self.array = array

    def __setstate__(self, state):
        _, shape, dtype, fortran_order, data = state
        if not isinstance(dtype, _Dtype) or not isinstance(data, bytes):
            raise ForbiddenPickle("holds an array of something else than numbers")
        self.array = np.frombuffer(data, dtype.dtype).reshape(shape, order="F" if fortran_order else "C")


class _Dtype:
    """Stands in for ``numpy.dtype``: plain numbers and booleans only."""

    __slots__ = ("dtype",)

    def __init__(self, code, *_):
        if not isinstance(code, str) or not re.fullmatch(r"[biuf]\d", code):
            raise ForbiddenPickle(f"holds an array of type {short(code)}, which is not a plain number")
        self.dtype = np.dtype(code)

    def __setstate__(self, state):
        self.dtype = self.dtype.newbyteorder(state[1])


class _Admitted:
    """A name that a pickle may use: calls ``stand_in``, and cannot be changed by the pickle."""

    __slots__ = ("stand_in",)
    stand_in: Callable

    def __init__(self, stand_in):
        object.__setattr__(self, "stand_in", stand_in)

    def __call__(self, *arguments):
        return self.stand_in(*arguments)

    __setattr__ = __setstate__ = _refuse_change


def _numpy_reconstruct(*_):
    return Array()


def _bytes_of_text(text, encoding):
    """``_codecs.encode``, which protocol 2 uses for bytes."""
    if encoding != "latin1" or not isinstance(text, str):
        raise ForbiddenPickle(f"encodes something as {short(encoding)}")
    return text.encode("latin1")


def _tuple_of(items=()):
    return tuple(items) if isinstance(items, list | tuple) else ()


def _rebuild_tensor(storage, offset, size, strides, *_):
    """A view of a storage: its first element, sizes and strides counted in elements, all of it inside the storage."""
    if not isinstance(storage, Storage):
        raise ForbiddenPickle("holds a tensor without a storage")
    counts = (offset, *size, *strides)
    if not all(isinstance(count, int) and count >= 0 for count in counts) or len(size) != len(strides):
        raise ForbiddenPickle("holds a tensor of impossible shape")
    flat = storage.flat
    if flat is None:  # the first of two readings, see _load_torch_legacy
        return Array()
    if 0 in size:
        return Array(np.empty(size, flat.dtype))
    if offset + sum((count - 1) * stride for count, stride in zip(size, strides)) >= flat.size:
        raise ForbiddenPickle("holds a tensor that reaches beyond its storage")
    if math.prod(size) > flat.size:
        raise ForbiddenPickle("holds a tensor of more numbers than its storage")
    steps = [stride * flat.itemsize for stride in strides]
    return Array(np.lib.stride_tricks.as_strided(flat[offset:], size, steps, writeable=False))


ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _numpy_reconstruct,  # numpy 1
    ("numpy._core.multiarray", "_reconstruct"): _numpy_reconstruct,  # numpy 2
    ("numpy", "ndarray"): _numpy_reconstruct,  # an argument of _reconstruct
    ("numpy", "dtype"): _Dtype,
    ("collections", "OrderedDict"): _Mapping,
    ("_codecs", "encode"): _bytes_of_text,
    ("builtins", "tuple"): _tuple_of,
    ("__builtin__", "tuple"): _tuple_of,
    ("builtins", "bytes"): lambda: b"",
    ("__builtin__", "bytes"): lambda: b"",
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
}


def check_keys(keys: Iterable) -> None:
    """Raise ForbiddenPickle unless keys are names or numbers: hashing nested tuples can take forever."""
    for key in keys:
        if not isinstance(key, str | int):
            raise ForbiddenPickle(f"holds a {type(key).__name__.lstrip('_')} as the name of something")


class _CheckedFile:
    """A file that allocates no more than it has left, whatever size a pickle claims."""

    def __init__(self, file):
        self._file = file
        start = file.tell()
        self._end = file.seek(0, io.SEEK_END)
        file.seek(start)

    def readline(self):
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise EOFError("it ends too early")
        return line

    def read(self, count):
        if count > _ALWAYS_READ and count > self._end - self._file.tell():
            raise EOFError("it ends too early")
        content = self._file.read(count)
        if len(content) < count:
            raise EOFError("it ends too early")
        return content


class TensorUnpickler(pickle._Unpickler):
    """An unpickler of tensors, in Python: the C one allocates a table of any size that a file claims to need.

    Args:
        file: a binary file.
        storage_of: ``storage_of(dtype, key, numel)`` gives torch's storages as :class:`Storage`.
    """

    def __init__(self, file, storage_of=None):
        super().__init__(_CheckedFile(file), encoding="latin1")
        self.storage_of = storage_of

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in TORCH_STORAGES:
            return TORCH_STORAGES[name]
        if (module, name) not in ADMITTED:
            raise ForbiddenPickle(f"asks for {f'{module}.{name}'[:160]!r}, which tensors are not made of")
        return _Admitted(ADMITTED[module, name])

    def persistent_load(self, persistent_id: Any) -> Storage:
        if self.storage_of is None:
            raise ForbiddenPickle("refers to something outside of itself")
        kind, dtype, key, _, numel, *view = persistent_id
        if kind != "storage" or dtype not in TORCH_STORAGES.values() or not isinstance(numel, int):
            raise ForbiddenPickle(f"refers to {short(kind)}, which is not a storage of numbers")
        if not isinstance(key, str | int):
            raise ForbiddenPickle("refers to a storage without a name")
        if view and view[0] is not None:
            raise ForbiddenPickle("holds views of storages as torch 0.3 and older wrote them")
        return self.storage_of(dtype, key, numel)


def _checked(load, keys):
    """An instruction of the unpickler whose ``keys`` are checked before they are hashed."""

    def run(unpickler):
        check_keys(keys(unpickler))
        load(unpickler)

    return run


def _refuse_sets(unpickler):
    raise ForbiddenPickle("holds a set or a bytearray")


# The operands of an instruction are on the stack: SETITEM's two on top, the others' since the last mark.
_KEYS = {
    pickle.SETITEM: lambda unpickler: unpickler.stack[-2:-1],
    pickle.SETITEMS: lambda unpickler: unpickler.stack[::2],
    pickle.DICT: lambda unpickler: unpickler.stack[::2],
}
TensorUnpickler.dispatch = {
    **pickle._Unpickler.dispatch,
    **{code[0]: _checked(pickle._Unpickler.dispatch[code[0]], keys) for code, keys in _KEYS.items()},
    **{code[0]: _refuse_sets for code in (pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET, pickle.BYTEARRAY8)},
}
