"""Tensors out of pickles without running what a pickle may ask for.

A pickle is a program: it may name any function of any module and have it called. The reader here knows a handful of
names, those that ``torch.save`` and ``paddle.save`` use for tensors, and answers each with a stand-in of its own:
torch, paddle and numpy's unpickling are never called. Any other name ends the reading before it could be called.

A small pickle may also ask for much: the reader counts its steps and the bytes that they make, and ends at a bound that
follows from the size of the file.

Formats: numpy arrays as pickled by protocols 2 to 4, in the dictionaries of ``paddle.save``; the zip archive of
``torch.save`` since torch 1.6, and its older sequence of pickles followed by the storages.
"""

import io
import math
import os
import pickle
import re
import reprlib
import zipfile
from collections.abc import Callable

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
TORCH_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
TORCH_LEGACY_PROTOCOL = 1001
PADDLE_NAMES = "StructuredToParameterName@@"  # paddle's own names of the parameters: strings, no tensors
PADDLE_SPLIT = "UnpackBigParamInfor@@"  # which entries are the parts of a large tensor
MOST_STEPS = 1_000_000  # of a pickle; a tensor takes about fifty
MOST_MEMBERS = 100_000  # of an archive; one for each tensor
# The tensors of a file, as they are read, have at most this many times its bytes: bfloat16 becomes float32, and a tied
# weight may be there under two names.
LARGEST_GROWTH = 8
_SMALLEST_BOUND = 2**20  # bytes, for small files
_LARGEST_KEY = 2**31
_ALWAYS_READ = 2**16  # bytes
_ENCRYPTED = 1  # of the flags of an archive's member


class NotTensors(ValueError):
    """A file that is not what it should be; the message continues the file's name."""


class ForbiddenPickle(NotTensors):
    """A pickle that asks for something tensors are not made of."""


_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 80, 80


class _Bound:
    """How many bytes the contents of a file may have, in all."""

    def __init__(self, file_bytes):
        self.left = max(LARGEST_GROWTH * file_bytes, _SMALLEST_BOUND)

    def take(self, count):
        """Raise NotTensors if there are more than are left."""
        self.left -= count
        if self.left < 0:
            raise NotTensors(f"holds tensors that are more than {LARGEST_GROWTH} times as large as the file")


def bfloat16_to_float32(bits: np.ndarray) -> np.ndarray:
    """uint16 array of bfloat16 bits -> the float32 array of the same values."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _refuse_change(*_):
    raise ForbiddenPickle("changes what it was given")


class _Mapping(dict):
    """Stands in for ``collections.OrderedDict``; what hangs on it (torch's ``_metadata``) is dropped."""

    def __init__(self, items=()):
        _check_keys(items if isinstance(items, dict) else [key for key, _ in items])
        super().__init__(items)

    def __setstate__(self, state):
        pass


class _Storage:
    """Stands in for a torch storage: ``flat``, a flat array, or None while only its size is of interest."""

    __slots__ = ("flat",)

    def __init__(self, flat=None):
        self.flat = flat

    __setstate__ = _refuse_change


class _Array:
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
            raise ForbiddenPickle(f"holds an array of type {_short.repr(code)}, which is not a plain number")
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
    return _Array()


def _bytes_of_text(text, encoding):
    """``_codecs.encode``, which protocol 2 uses for bytes."""
    if encoding != "latin1" or not isinstance(text, str):
        raise ForbiddenPickle(f"encodes something as {_short.repr(encoding)}")
    return text.encode("latin1")


def _tuple_of(items=()):
    return tuple(items) if isinstance(items, list | tuple) else ()


def _rebuild_tensor(storage, offset, size, strides, *_):
    """A view of a storage: its first element, sizes and strides counted in elements, all of it inside the storage."""
    if not isinstance(storage, _Storage):
        raise ForbiddenPickle("holds a tensor without a storage")
    counts = (offset, *size, *strides)
    if not all(isinstance(count, int) and count >= 0 for count in counts) or len(size) != len(strides):
        raise ForbiddenPickle("holds a tensor of impossible shape")
    flat = storage.flat
    if flat is None:  # the first of two readings, see _load_torch_legacy
        return _Array()
    last = offset + sum((count - 1) * stride for count, stride in zip(size, strides))
    if 0 in size:
        return _Array(np.empty(size, flat.dtype))
    if last >= flat.size:
        raise ForbiddenPickle("holds a tensor that reaches beyond its storage")
    if math.prod(size) > flat.size:
        raise ForbiddenPickle("holds a tensor of more numbers than its storage")
    steps = [stride * flat.itemsize for stride in strides]
    return _Array(np.lib.stride_tricks.as_strided(flat[offset:], size, steps, writeable=False))


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


class _Unpickler(pickle._Unpickler):
    """An unpickler of tensors, in Python: the one in C takes memory for what a file only says that it holds.

    Args:
        file: a binary file.
        bound: :class:`_Bound` on what is made of it.
        storage_of: ``storage_of(type, key, numel)`` gives torch's storages as :class:`_Storage`.
    """

    def __init__(self, file, bound, storage_of=None):
        super().__init__(_CheckedFile(file), encoding="latin1")
        self.storage_of = storage_of
        self.bound = bound
        self.steps = 0

    def find_class(self, module, name):
        if module == "torch" and name in TORCH_STORAGES:
            return TORCH_STORAGES[name]
        if (module, name) not in ADMITTED:
            raise ForbiddenPickle(f"asks for {f'{module}.{name}'[:160]!r}, which tensors are not made of")
        stand_in = ADMITTED[module, name]
        return _Admitted(self._counted(stand_in) if stand_in in _COPYING else stand_in)

    def _counted(self, stand_in):
        """A function whose first argument is as long as its result, which is taken from the bound."""

        def counted(*arguments):
            is_counted = arguments and isinstance(arguments[0], str | list | tuple | dict)
            self.bound.take(len(arguments[0]) if is_counted else 0)
            return stand_in(*arguments)

        return counted

    def persistent_load(self, persistent_id):
        if self.storage_of is None:
            raise ForbiddenPickle("refers to something outside of itself")
        kind, dtype, key, _, numel, *view = persistent_id
        if kind != "storage" or dtype not in TORCH_STORAGES.values() or not isinstance(numel, int):
            raise ForbiddenPickle(f"refers to {_short.repr(kind)}, which is not a storage of numbers")
        if not isinstance(key, str | int):
            raise ForbiddenPickle("refers to a storage without a name")
        if view and view[0] is not None:
            raise ForbiddenPickle("holds views of storages as torch 0.3 and older wrote them")
        return self.storage_of(dtype, key, numel)


_COPYING = (_bytes_of_text, _tuple_of, _Mapping)


def _check_keys(keys):
    """Raise ForbiddenPickle unless keys are names or plain numbers: to look up a tuple of tuples can take for ever."""
    for key in keys:
        if not isinstance(key, str) and not (isinstance(key, int) and abs(key) < _LARGEST_KEY):
            raise ForbiddenPickle(f"holds a {type(key).__name__.lstrip('_')} as the name of something")


def _step(load, keys=None):
    """An instruction of the unpickler that is counted; ``keys`` gives the keys that it looks up."""

    def counted(unpickler):
        unpickler.steps += 1
        if unpickler.steps > MOST_STEPS:
            raise NotTensors(f"takes more than {MOST_STEPS:,} steps to read, too many for tensors")
        if keys is not None:
            _check_keys(keys(unpickler))
        load(unpickler)

    return counted


def _refuse_kind(unpickler):
    raise ForbiddenPickle("holds a set or a bytearray")


_KEYS = {  # the arguments of an instruction on the stack are behind a mark in ``metastack``, or two of them on top
    pickle.SETITEM: lambda unpickler: unpickler.stack[-2:-1],
    pickle.SETITEMS: lambda unpickler: unpickler.stack[::2],
    pickle.DICT: lambda unpickler: unpickler.stack[::2],
}
_REFUSED = (pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET, pickle.BYTEARRAY8)
_Unpickler.dispatch = {
    code: _refuse_kind if bytes([code]) in _REFUSED else _step(load, _KEYS.get(bytes([code])))
    for code, load in pickle._Unpickler.dispatch.items()
}


class _CheckedFile:
    """A file that is not asked for more bytes than it has left."""

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


def _storage(data, dtype, numel, bound, little_endian=True):
    """The elements of a torch storage as a flat array, bfloat16 as float32."""
    bound.take(len(data) * (2 if dtype == BFLOAT16 else 1))
    element = np.dtype("uint16" if dtype == BFLOAT16 else dtype).newbyteorder("<" if little_endian else ">")
    if len(data) != numel * element.itemsize:
        raise NotTensors(f"is cut short: a storage has {len(data)} bytes instead of {numel * element.itemsize}")
    flat = np.frombuffer(data, element)
    flat = flat.astype(element.newbyteorder("="), copy=False)
    return _Storage(bfloat16_to_float32(flat) if dtype == BFLOAT16 else flat)


def read_torch(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The tensors of a file of ``torch.save`` that holds one dictionary of tensors.

    Returns:
        ``{name: numpy array}``; bfloat16 as float32.

    Raises:
        ValueError: the file is no such file; :class:`NotTensors` where it is known what is wrong.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        bound = _Bound(size)
        if zipfile.is_zipfile(file):
            return _tensors(_load_torch_zip(file, size, bound), bound)
        file.seek(0)
        return _tensors(_load_torch_legacy(file, size, bound), bound)


def _load_torch_zip(file, size, bound):
    with zipfile.ZipFile(file) as archive:
        if len(archive.namelist()) > MOST_MEMBERS:
            raise NotTensors(f"is a zip archive of more than {MOST_MEMBERS:,} files")
        members = {name.split("/", 1)[-1]: name for name in archive.namelist()}
        if "data.pkl" not in members:
            raise NotTensors("is a zip archive, but not one of torch.save")

        def read(name):
            member = archive.getinfo(members[name])
            if member.flag_bits & _ENCRYPTED:
                raise NotTensors("is an encrypted archive, which torch.save does not write")
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > size:
                raise ForbiddenPickle("holds compressed storages or pickles, which torch.save does not write")
            return archive.read(member)

        little_endian = "byteorder" not in members or read("byteorder") == b"little"
        storages = {}

        def storage_of(dtype, key, numel):
            if key not in storages:
                storages[key] = _storage(read(f"data/{key}"), dtype, numel, bound, little_endian)
            return storages[key]

        return _Unpickler(io.BytesIO(read("data.pkl")), bound, storage_of).load()


def _load_torch_legacy(file, size, bound):
    """Pickles of a magic number, a protocol, facts about the machine, the object and the keys; then the storages.

    The storages come after the object that refers to them, so that the pickles are read twice.
    """
    sizes = {}

    def note(dtype, key, numel):
        sizes[key] = dtype, numel
        return _Storage()

    def pickles(storage_of):
        file.seek(0)
        magic, protocol, machine, found, keys = (_Unpickler(file, bound, storage_of).load() for _ in range(5))
        if (magic, protocol) != (TORCH_LEGACY_MAGIC, TORCH_LEGACY_PROTOCOL):
            raise NotTensors("was not written by torch.save")
        return machine, found, keys

    if _Unpickler(file, bound).load() != TORCH_LEGACY_MAGIC:
        raise NotTensors("was not written by torch.save")
    machine, _, keys = pickles(note)
    _check_keys(keys)
    little_endian = bool(machine.get("little_endian", True))
    storages = {}
    for key in keys:
        dtype, numel = sizes[key]
        width = 2 if dtype == BFLOAT16 else np.dtype(dtype).itemsize
        if int.from_bytes(file.read(8), "little" if little_endian else "big") != numel:
            raise NotTensors("is damaged: a storage does not have the size it is said to have")
        if not 0 <= numel * width <= size - file.tell():
            raise NotTensors("is cut short: a storage has more bytes than are left")
        storages[key] = _storage(file.read(numel * width), dtype, numel, bound, little_endian)
    return pickles(lambda dtype, key, numel: storages[key])[1]


def read_paddle(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The tensors of a file of ``paddle.save`` that holds one dictionary of tensors.

    uint16 is what paddle writes for bfloat16 (it has no unsigned 16-bit numbers of its own) and becomes float32.
    Result and errors are those of :func:`read_torch`.
    """
    with open(path, "rb") as file:
        bound = _Bound(os.fstat(file.fileno()).st_size)
        found = _Unpickler(file, bound).load()
    if isinstance(found, dict):
        found.pop(PADDLE_NAMES, None)
        for name, parts in found.pop(PADDLE_SPLIT, {}).items():
            _check_keys(parts["slices"])
            arrays = [found.pop(part).array for part in parts["slices"]]
            bound.take(sum(array.nbytes for array in arrays))
            found[name] = _Array(np.concatenate(arrays).reshape(parts["OriginShape"]))
    tensors = _tensors(found, bound)
    bound.take(2 * sum(array.nbytes for array in tensors.values() if array.dtype == np.uint16))
    return {name: bfloat16_to_float32(array) if array.dtype == np.uint16 else array for name, array in tensors.items()}


def _tensors(found, bound):
    """``{name: array}`` of what a pickle held."""
    if not isinstance(found, dict):
        raise NotTensors(f"holds a {type(found).__name__} instead of a dictionary of tensors")
    arrays = {}
    for name, value in found.items():
        if isinstance(value, tuple) and len(value) == 2:  # paddle: (its own name, array)
            value = value[1]
        if not isinstance(name, str) or not isinstance(value, _Array) or value.array is None:
            kind = type(value).__name__.lstrip("_")
            raise NotTensors(f"holds under {_short.repr(name)} a {kind} instead of a tensor")
        array = value.array
        if not array.dtype.isnative or not array.flags.c_contiguous:
            bound.take(array.nbytes)
            array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
        arrays[name] = array
    return arrays
