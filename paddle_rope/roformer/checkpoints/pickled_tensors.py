"""Tensors from the pickled files of PyTorch and Paddle, by :class:`TensorUnpickler`.

Formats: numpy arrays as pickled by protocols 2 to 4, in the dictionaries of ``paddle.save``; the zip archive of
``torch.save`` since torch 1.6, and its older sequence of pickles followed by the storages.
"""

import io
import os
import zipfile

import numpy as np

from paddle_rope.roformer.checkpoints.tensor_unpickler import (
    BFLOAT16,
    Array,
    ForbiddenPickle,
    NotTensors,
    Storage,
    TensorUnpickler,
    check_keys,
    short,
)

TORCH_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
TORCH_LEGACY_PROTOCOL = 1001
PADDLE_NAMES = "StructuredToParameterName@@"  # paddle's own names of the parameters: strings, no tensors
PADDLE_SPLIT = "UnpackBigParamInfor@@"  # which entries are the parts of a large tensor
_ENCRYPTED = 1  # flag of a member of an archive


def bfloat16_to_float32(bits: np.ndarray) -> np.ndarray:
    """uint16 array of bfloat16 bits -> the float32 array of the same values."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def read_torch(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The tensors of a file of ``torch.save`` that holds one dictionary of tensors.

    Returns:
        ``{name: numpy array}``; bfloat16 as float32.

    Raises:
        ValueError: the file is no such file; :class:`NotTensors` where the reason is known.
    """
    with open(path, "rb") as file:
        if zipfile.is_zipfile(file):
            return _tensors(_load_torch_zip(file))
        file.seek(0)
        return _tensors(_load_torch_legacy(file))


def _storage(data, dtype, numel, little_endian=True):
    """The elements of a torch storage as a flat array, bfloat16 as float32."""
    element = np.dtype("uint16" if dtype == BFLOAT16 else dtype).newbyteorder("<" if little_endian else ">")
    if len(data) != numel * element.itemsize:
        raise NotTensors(f"is cut short: a storage has {len(data)} bytes instead of {numel * element.itemsize}")
    flat = np.frombuffer(data, element)
    flat = flat.astype(element.newbyteorder("="), copy=False)
    return Storage(bfloat16_to_float32(flat) if dtype == BFLOAT16 else flat)


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
        storages = {}

        def storage_of(dtype, key, numel):
            if key not in storages:
                storages[key] = _storage(read(f"data/{key}"), dtype, numel, little_endian)
            return storages[key]

        return TensorUnpickler(io.BytesIO(read("data.pkl")), storage_of).load()


def _load_torch_legacy(file):
    """Pickles of a magic number, a protocol, facts about the machine, the object and the keys; then the storages.

    The storages come after the object that refers to them, so the pickles are read twice.
    """
    sizes = {}

    def note(dtype, key, numel):
        sizes[key] = dtype, numel
        return Storage()

    def pickles(storage_of):
        file.seek(0)
        magic, protocol, machine, found, keys = (TensorUnpickler(file, storage_of).load() for _ in range(5))
        if (magic, protocol) != (TORCH_LEGACY_MAGIC, TORCH_LEGACY_PROTOCOL):
            raise NotTensors("was not written by torch.save")
        return machine, found, keys

    if TensorUnpickler(file).load() != TORCH_LEGACY_MAGIC:
        raise NotTensors("was not written by torch.save")
    machine, _, keys = pickles(note)
    check_keys(keys)
    little_endian = bool(machine.get("little_endian", True))
    file_size = os.fstat(file.fileno()).st_size
    storages = {}
    for key in keys:
        dtype, numel = sizes[key]
        width = 2 if dtype == BFLOAT16 else np.dtype(dtype).itemsize
        if int.from_bytes(file.read(8), "little" if little_endian else "big") != numel:
            raise NotTensors("is damaged: a storage does not have the size it is said to have")
        if not 0 <= numel * width <= file_size - file.tell():
            raise NotTensors("is cut short: a storage has more bytes than are left")
        storages[key] = _storage(file.read(numel * width), dtype, numel, little_endian)
    return pickles(lambda dtype, key, numel: storages[key])[1]


def read_paddle(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The tensors of a file of ``paddle.save`` that holds one dictionary of tensors.

    uint16 is what paddle writes for bfloat16 (it has no unsigned 16-bit numbers of its own) and becomes float32.
    Result and errors are those of :func:`read_torch`.
    """
    with open(path, "rb") as file:
        found = TensorUnpickler(file).load()
    if isinstance(found, dict):
        found.pop(PADDLE_NAMES, None)
        for name, parts in found.pop(PADDLE_SPLIT, {}).items():
            check_keys(parts["slices"])
            arrays = [found.pop(part).array for part in parts["slices"]]
            found[name] = Array(np.concatenate(arrays).reshape(parts["OriginShape"]))
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
        if not isinstance(name, str) or not isinstance(value, Array) or value.array is None:
            kind = type(value).__name__.lstrip("_")
            raise NotTensors(f"holds under {short(name)} a {kind} instead of a tensor")
        array = value.array
        arrays[name] = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    return arrays
