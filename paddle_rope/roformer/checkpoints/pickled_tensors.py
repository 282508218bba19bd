"""Tensors from the pickled files of PyTorch and Paddle; nothing in a file is executed.

A pickle is a program: it can name any function of any module and have it called. :class:`TensorUnpickler` knows only
the few names that ``torch.save`` and ``paddle.save`` use for tensors, and gives a stand-in defined here for each. Any
other name ends the reading before it could be called.

Formats: numpy arrays as pickled by protocols 2 to 4, in the dictionaries of ``paddle.save``; the zip archive of
``torch.save`` since torch 1.6, and its older sequence of pickles followed by the storages.
"""

import io
import math
import mmap
import os
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from paddle_rope.options import shown

TORCH_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
TORCH_LEGACY_PROTOCOL = 1001
PADDLE_NAMES = "StructuredToParameterName@@"  # paddle's own names of the parameters: strings, no tensors
PADDLE_SPLIT = "UnpackBigParamInfor@@"  # which entries are the parts of a large tensor
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
_ENCRYPTED = 1  # flag of a member of an archive


class NotTensors(ValueError):
    """A file without readable tensors; the message continues the file's name."""


class ForbiddenPickle(NotTensors):
    """A pickle that names something tensors are not made of."""


def bfloat16_to_float32(bits: np.ndarray) -> np.ndarray:
    """uint16 array of bfloat16 bits -> the float32 array of the same values.

    >>> bfloat16_to_float32(np.array([0x3F80, 0xC000], np.uint16))
    array([ 1., -2.], dtype=float32)
    """
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _refuse_change(*_):
    raise ForbiddenPickle("changes what it was given")


class _Mapping(dict):
    """Stands in for ``collections.OrderedDict``; its attributes (torch's ``_metadata``) are dropped."""

    def __init__(self, items: Any = ()) -> None:
        _check_keys(items if isinstance(items, dict) else [key for key, _ in items])
        super().__init__(items)

    def __setstate__(self, state: Any) -> None:
        pass


class Array:
    """Stands in for a numpy array; ``array`` is None until its state has been read."""

    array: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran_order, data = state
        if not isinstance(dtype, _Dtype) or not isinstance(data, bytes):
            raise ForbiddenPickle("holds an array of something else than numbers")
        self.array = np.frombuffer(data, dtype.dtype).reshape(shape, order="F" if fortran_order else "C")


class _Dtype:
    """Stands in for ``numpy.dtype``: plain numbers and booleans only."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or not re.fullmatch(r"[biuf]\d", code):
            raise ForbiddenPickle(f"holds an array of type {shown(code)}, which is not a plain number")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _Storage:
    """Stands in for a torch storage of ``numel`` numbers; ``flat`` is None until its bytes have been read."""

    flat: Any = None

    def __init__(self, dtype: str, numel: int) -> None:
        self.dtype, self.numel = dtype, numel
        self.element = np.dtype("uint16" if dtype == BFLOAT16 else dtype)

    def fill(self, data, little_endian):
        """Take the bytes ``data``; bfloat16 becomes float32."""
        if len(data) != self.numel * self.element.itemsize:
            size = self.numel * self.element.itemsize
            raise NotTensors(f"is cut short: a storage has {len(data)} bytes instead of {size}")
        flat = np.frombuffer(data, self.element.newbyteorder("<" if little_endian else ">"))
        flat = flat.astype(self.element, copy=False)
        self.flat = bfloat16_to_float32(flat) if self.dtype == BFLOAT16 else flat

    __setstate__ = _refuse_change


class _TorchTensor:
    """Stands in for a torch tensor, a view of a storage: its first element, sizes and strides counted in elements."""

    def __init__(self, storage: Any, offset: Any, size: Any, strides: Any, *_: Any) -> None:
        if not isinstance(storage, _Storage):
            raise ForbiddenPickle("holds a tensor without a storage")
        counts = (offset, *size, *strides)
        if not all(isinstance(count, int) and count >= 0 for count in counts) or len(size) != len(strides):
            raise ForbiddenPickle("holds a tensor of impossible shape")
        self.storage, self.offset, self.size, self.strides = storage, offset, size, strides

    @property
    def array(self):
        """The tensor as numpy array, once its storage has been read; all of it is inside the storage."""
        flat = self.storage.flat
        if 0 in self.size:
            return np.empty(self.size, flat.dtype)
        if self.offset + sum((count - 1) * stride for count, stride in zip(self.size, self.strides)) >= flat.size:
            raise ForbiddenPickle("holds a tensor that reaches beyond its storage")
        if math.prod(self.size) > flat.size:
            raise ForbiddenPickle("holds a tensor of more numbers than its storage")
        steps = [stride * flat.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(flat[self.offset :], self.size, steps, writeable=False)

    __setstate__ = _refuse_change


class _Admitted:
    """A name that a pickle may use: calls ``stand_in``, and cannot be changed by the pickle."""

    __slots__ = ("stand_in",)
    stand_in: Callable

    def __init__(self, stand_in: Callable) -> None:
        object.__setattr__(self, "stand_in", stand_in)

    def __call__(self, *arguments: Any) -> Any:
        return self.stand_in(*arguments)

    __setattr__ = __setstate__ = _refuse_change


def _bytes_of_text(text, encoding):
    """``_codecs.encode``, which protocol 2 uses for bytes."""
    if encoding != "latin1" or not isinstance(text, str):
        raise ForbiddenPickle(f"encodes something as {shown(encoding)}")
    return text.encode("latin1")


def _new_array(*_):
    return Array()


ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _new_array,  # numpy 1
    ("numpy._core.multiarray", "_reconstruct"): _new_array,  # numpy 2
    ("numpy", "ndarray"): _new_array,  # an argument of _reconstruct
    ("numpy", "dtype"): _Dtype,
    ("collections", "OrderedDict"): _Mapping,
    ("_codecs", "encode"): _bytes_of_text,
    ("builtins", "tuple"): lambda items=(): tuple(items) if isinstance(items, list | tuple) else (),
    ("builtins", "bytes"): lambda: b"",
    ("torch._utils", "_rebuild_tensor"): _TorchTensor,
    ("torch._utils", "_rebuild_tensor_v2"): _TorchTensor,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
}


def _check_keys(keys: Iterable) -> None:
    """Raise ForbiddenPickle unless keys are names or numbers: hashing nested tuples can take forever."""
    for key in keys:
        if not isinstance(key, str | int):
            raise ForbiddenPickle(f"holds a {type(key).__name__.lstrip('_')} as the name of something")


class _Mapped(mmap.mmap):
    """The bytes of a file; ``read`` allocates no more than there is, whatever size a pickle claims."""

    def __new__(cls, file: Any) -> "_Mapped":
        return super().__new__(cls, file.fileno(), 0, access=mmap.ACCESS_READ)

    def read(self, count: Any = None) -> bytes:
        content = super().read(count)
        if len(content) < count:
            raise EOFError("it ends too early")
        return content

    def readline(self):
        line = super().readline()
        if not line.endswith(b"\n"):
            raise EOFError("it ends too early")
        return line


class TensorUnpickler(pickle._Unpickler):
    """An unpickler of tensors, in Python: the C one allocates a table of any size that a file claims to need.

    Args:
        file: a :class:`_Mapped` file, or bytes in memory as a file.

    Attributes:
        storages: torch's storages by their keys; empty until their bytes are read with :meth:`_Storage.fill`. None
            where a pickle may not refer to any.
    """

    def __init__(self, file: Any, storages: dict | None = None) -> None:
        super().__init__(file, encoding="latin1")
        self.storages = storages

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name, a type for those of torch's storages; ForbiddenPickle for any other name."""
        if module == "torch" and name in TORCH_STORAGES:
            return TORCH_STORAGES[name]
        stand_in = ADMITTED.get((module.replace("__builtin__", "builtins"), name))
        if stand_in is None:
            raise ForbiddenPickle(f"asks for {f'{module}.{name}'[:160]!r}, which tensors are not made of")
        return _Admitted(stand_in)

    def persistent_load(self, persistent_id: Any) -> _Storage:
        """The storage that torch's ``persistent_id`` refers to."""
        if self.storages is None:
            raise ForbiddenPickle("refers to something outside of itself")
        kind, dtype, key, _, numel, *view = persistent_id
        if kind != "storage" or dtype not in TORCH_STORAGES.values() or not isinstance(numel, int):
            raise ForbiddenPickle(f"refers to {shown(kind)}, which is not a storage of numbers")
        if not isinstance(key, str | int):
            raise ForbiddenPickle("refers to a storage without a name")
        if view and view[0] is not None:
            raise ForbiddenPickle("holds views of storages as torch 0.3 and older wrote them")
        return self.storages.setdefault(key, _Storage(dtype, numel))


def _checked(load, keys):
    """An instruction of the unpickler whose ``keys`` are checked before they are hashed."""

    def run(unpickler):
        _check_keys(keys(unpickler))
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


def read_torch(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The tensors of a file of ``torch.save`` that holds one dictionary of tensors.

    Returns:
        ``{name: numpy array}``; bfloat16 as float32.

    Raises:
        ValueError: the file is no such file; :class:`NotTensors` where the reason is known.
    """
    with open(path, "rb") as file:
        return _tensors(_load_torch_zip(file) if zipfile.is_zipfile(file) else _load_torch_legacy(file))


def _load_torch_zip(file):
    with zipfile.ZipFile(file) as archive:
        members = {name.split("/", 1)[-1]: name for name in archive.namelist()}
        if "data.pkl" not in members:
            raise NotTensors("is a zip archive, but not one of torch.save")

        def read(name):
            member = archive.getinfo(members[name])
            if member.flag_bits & _ENCRYPTED:
                raise NotTensors("is an encrypted archive, which torch.save does not write")
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise ForbiddenPickle("holds compressed storages or pickles, which torch.save does not write")
            return archive.read(member)

        little_endian = "byteorder" not in members or read("byteorder") == b"little"
        storages: dict = {}
        found = TensorUnpickler(io.BytesIO(read("data.pkl")), storages).load()
        for key, storage in storages.items():
            storage.fill(read(f"data/{key}"), little_endian)
        return found


def _load_torch_legacy(file):
    """Pickles of a magic number, a protocol, facts about the machine, the object and the keys; then the storages."""
    with _Mapped(file) as content:
        if TensorUnpickler(content).load() != TORCH_LEGACY_MAGIC:
            raise NotTensors("was not written by torch.save")
        storages: dict = {}
        protocol, machine, found, keys = (TensorUnpickler(content, storages).load() for _ in range(4))
        if protocol != TORCH_LEGACY_PROTOCOL:
            raise NotTensors("was not written by torch.save")
        _check_keys(keys)
        little_endian = bool(machine.get("little_endian", True))
        for key in keys:
            storage = storages[key]
            if int.from_bytes(content.read(8), "little" if little_endian else "big") != storage.numel:
                raise NotTensors("is damaged: a storage has another size than its tensors need")
            storage.fill(content.read(max(0, storage.numel * storage.element.itemsize)), little_endian)
        return found


def read_paddle(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The tensors of a file of ``paddle.save`` that holds one dictionary of tensors.

    uint16 is what paddle writes for bfloat16 (it has no unsigned 16-bit numbers) and becomes float32.
    Result and errors as for :func:`read_torch`.
    """
    with open(path, "rb") as file, _Mapped(file) as content:
        found = TensorUnpickler(content).load()
    if isinstance(found, dict):
        found.pop(PADDLE_NAMES, None)
        for name, parts in found.pop(PADDLE_SPLIT, {}).items():
            _check_keys(parts["slices"])
            whole = Array()
            whole.array = np.concatenate([found.pop(part).array for part in parts["slices"]])
            whole.array = whole.array.reshape(parts["OriginShape"])
            found[name] = whole
    tensors = _tensors(found)
    return {name: bfloat16_to_float32(array) if array.dtype == np.uint16 else array for name, array in tensors.items()}


def _tensors(found):
    """``{name: array}`` of what a pickle held."""
    if not isinstance(found, dict):
        raise NotTensors(f"holds a {type(found).__name__} instead of a dictionary of tensors")
    arrays = {}
    for name, value in found.items():
        if isinstance(value, tuple) and len(value) == 2:  # paddle: (its own name, array)
            value = value[1]
        array = value.array if isinstance(value, Array | _TorchTensor) else None
        if not isinstance(name, str) or array is None:
            kind = type(value).__name__.lstrip("_")
            raise NotTensors(f"holds under {shown(name)} a {kind} instead of a tensor")
        arrays[name] = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    return arrays
