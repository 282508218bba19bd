"""Tensors from the pickled files of PyTorch and Paddle; nothing in a file is executed.

A pickle is a program that can call any function of any module. :class:`_TensorUnpickler` knows only the few names that
``torch.save`` (the zip archive since torch 1.6, and the older sequence of pickles and storages) and ``paddle.save`` use
for tensors, and has a replacement for each. Any other name is an error.
"""

import io
import math
import os
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from paddle_rope.options import shown

TORCH_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
TORCH_LEGACY_PROTOCOL = 1001
PADDLE_NAMES = "StructuredToParameterName@@"  # key of paddle's own parameter names: strings, not tensors
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


class NotTensors(ValueError):
    """A file without readable tensors; the message is written to follow the file's name."""


def bfloat16_to_float32(bits: np.ndarray) -> np.ndarray:
    """The float32 values of a uint16 array of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


class _Dtype:
    """Replaces ``numpy.dtype``: plain numbers and booleans only."""

    def __init__(self, code, *_):
        if not isinstance(code, str) or not re.fullmatch(r"[biuf]\d", code):
            raise NotTensors(f"holds an array of type {shown(code)}, which is not a plain number")
        self.dtype = np.dtype(code)

    def set_state(self, state):
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """Replaces a numpy array; ``array`` is None until its state has been read."""

    array: np.ndarray | None = None

    def __init__(self, *_):
        pass

    def set_state(self, state):
        _, shape, dtype, fortran_order, data = state
        if not isinstance(dtype, _Dtype) or not isinstance(data, bytes):
            raise NotTensors("holds an array of something else than numbers")
        self.array = np.frombuffer(data, dtype.dtype).reshape(shape, order="F" if fortran_order else "C")


class _Storage:
    """Replaces a torch storage of ``numel`` numbers; ``flat`` is None until its bytes have been read."""

    flat: Any = None

    def __init__(self, dtype, numel):
        self.dtype, self.numel = dtype, numel
        self.element = np.dtype("uint16" if dtype == BFLOAT16 else dtype)

    def fill(self, data, little_endian):
        if len(data) != self.numel * self.element.itemsize:
            raise NotTensors(f"is cut short: a storage of {shown(self.numel)} {self.dtype} has {len(data)} bytes")
        flat = np.frombuffer(data, self.element.newbyteorder("<" if little_endian else ">"))
        flat = flat.astype(self.element, copy=False)
        self.flat = bfloat16_to_float32(flat) if self.dtype == BFLOAT16 else flat


class _TorchTensor:
    """Replaces a torch tensor, a view of a storage with an offset, sizes and strides in elements."""

    def __init__(self, storage, offset, size, strides, *_):
        if not isinstance(storage, _Storage):
            raise NotTensors("holds a tensor without a storage")
        counts = (offset, *size, *strides)
        if not all(isinstance(count, int) and count >= 0 for count in counts) or len(size) != len(strides):
            raise NotTensors("holds a tensor of impossible shape")
        self.storage, self.offset, self.size, self.strides = storage, offset, size, strides

    @property
    def array(self):
        """The numpy array, once the storage has been read."""
        flat = self.storage.flat
        if 0 in self.size:
            return np.empty(self.size, flat.dtype)
        last = self.offset + sum((count - 1) * stride for count, stride in zip(self.size, self.strides))
        if last >= flat.size or math.prod(self.size) > flat.size:
            raise NotTensors("holds a tensor that reaches beyond its storage")
        steps = [stride * flat.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(flat[self.offset :], self.size, steps, writeable=False)


ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,  # numpy 1
    ("numpy._core.multiarray", "_reconstruct"): _Array,  # numpy 2
    ("numpy", "ndarray"): _Array,  # an argument of _reconstruct
    ("numpy", "dtype"): _Dtype,
    ("collections", "OrderedDict"): lambda: {},
    ("_codecs", "encode"): lambda text, encoding: text.encode("latin1"),  # bytes in protocol 2
    ("builtins", "tuple"): lambda items: items,  # paddle: (its own name, array)
    ("builtins", "bytes"): lambda: b"",
    ("torch._utils", "_rebuild_tensor_v2"): _TorchTensor,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
}


class _TensorUnpickler(pickle._Unpickler):
    """An unpickler of tensors, in Python: the C one allocates a table of any size that a file claims to need.

    Tuples become lists, which have no hash, because hashing nested tuples can take forever. ``file`` is in
    memory, so reading allocates no more than it holds. ``storages`` receives torch's storages by the keys that the
    pickle refers to; None if it must not refer to any.
    """

    def __init__(self, file: io.BytesIO, storages: dict | None = None) -> None:
        super().__init__(file, encoding="latin1")
        self.storages = storages

    def find_class(self, module: str, name: str) -> Any:
        """The replacement for a name, or the dtype of a torch storage; raises NotTensors for any other name."""
        if module == "torch" and name in TORCH_STORAGES:
            return TORCH_STORAGES[name]
        stand_in = ADMITTED.get((module.replace("__builtin__", "builtins"), name))
        if stand_in is None:
            raise NotTensors(f"names {f'{module}.{name}'[:160]!r}, which no tensor needs; nothing of it was run")
        return stand_in

    def persistent_load(self, persistent_id: Any) -> _Storage:
        """The storage that torch's ``persistent_id`` refers to."""
        if self.storages is None:
            raise NotTensors("refers to something outside of itself")
        kind, dtype, key, _, numel, *view = persistent_id  # before torch 0.4 a storage could be a view of another
        if kind != "storage" or dtype not in TORCH_STORAGES.values() or any(view):
            raise NotTensors(f"refers to {shown(kind)}, which is not a storage of numbers")
        return self.storages.setdefault(key, _Storage(dtype, numel))


def _load_build(unpickler):
    """Give a replacement its state; a pickle can change nothing else."""
    state, target = unpickler.stack.pop(), unpickler.stack[-1]
    if isinstance(target, _Dtype | _Array):
        target.set_state(state)
    elif not isinstance(target, dict):  # attributes of a dict (torch's _metadata) are dropped
        raise NotTensors("changes what it was given")


def _load_bytearray(unpickler):
    """Refuse a bytearray, because unpickling it would allocate any size that the file claims."""
    raise NotTensors("holds a bytearray")


def _as_list(code):
    def load(unpickler):
        pickle._Unpickler.dispatch[code](unpickler)
        unpickler.stack[-1] = list(unpickler.stack[-1])

    return load


_TUPLES = (pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)
_TensorUnpickler.dispatch = {
    **pickle._Unpickler.dispatch,
    **{code[0]: _as_list(code[0]) for code in _TUPLES},
    pickle.BUILD[0]: _load_build,
    pickle.BYTEARRAY8[0]: _load_bytearray,
}


def read_torch(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """``{name: array}`` of a ``torch.save`` file that holds one dictionary of tensors; bfloat16 becomes float32. Raises
    NotTensors if the file holds something else; a damaged file can raise any exception.
    """
    return _tensors(_load_torch_zip(path) if zipfile.is_zipfile(path) else _load_torch_legacy(path))


def _load_torch_zip(path):
    with zipfile.ZipFile(path) as archive:
        members = {name.split("/", 1)[-1]: name for name in archive.namelist()}
        if "data.pkl" not in members:
            raise NotTensors("is a zip archive, but not one of torch.save")

        def read(name):
            member = archive.getinfo(members[name])
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise NotTensors("holds compressed storages or pickles, which torch.save does not write")
            return archive.read(member)

        little_endian = "byteorder" not in members or read("byteorder") == b"little"
        storages: dict = {}
        found = _TensorUnpickler(io.BytesIO(read("data.pkl")), storages).load()
        for key, storage in storages.items():
            storage.fill(read(f"data/{key}"), little_endian)
        return found


def _load_torch_legacy(path):
    """Read five pickles (magic number, protocol, facts about the machine, object, keys), then the storages."""
    content = io.BytesIO(Path(path).read_bytes())
    storages: dict = {}
    for known in (TORCH_LEGACY_MAGIC, TORCH_LEGACY_PROTOCOL):
        if _TensorUnpickler(content).load() != known:
            raise NotTensors("was not written by torch.save")
    machine, found, keys = (_TensorUnpickler(content, storages).load() for _ in range(3))
    little_endian = bool(machine.get("little_endian", True))
    for key in keys:
        storage = storages[key]
        if int.from_bytes(content.read(8), "little" if little_endian else "big") != storage.numel:
            raise NotTensors("is damaged: a storage has another size than its tensors need")
        storage.fill(content.read(storage.numel * storage.element.itemsize), little_endian)
    return found


def read_paddle(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """As :func:`read_torch`, for a file of ``paddle.save``, which writes bfloat16 as uint16."""
    found = _TensorUnpickler(io.BytesIO(Path(path).read_bytes())).load()
    if isinstance(found, dict):
        found.pop(PADDLE_NAMES, None)
    tensors = _tensors(found)
    return {name: bfloat16_to_float32(array) if array.dtype == np.uint16 else array for name, array in tensors.items()}


def _tensors(found):
    """``{name: array}`` of what a pickle held."""
    if not isinstance(found, dict):
        raise NotTensors(f"holds a {type(found).__name__} instead of a dictionary of tensors")
    arrays = {}
    for name, value in found.items():
        if isinstance(value, list) and len(value) == 2:  # paddle: its own name, array
            value = value[1]
        array = value.array if isinstance(value, _Array | _TorchTensor) else None
        if not isinstance(name, str) or array is None:
            kind = type(value).__name__.lstrip("_")
            raise NotTensors(f"holds under {shown(name)} a {kind} instead of a tensor")
        arrays[name] = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    return arrays
