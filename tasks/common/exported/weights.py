"""The weights of a graph for Paddle Inference, walked through before the engine reads them.

The engine takes the memory that a header asks for before it looks whether the file has so many bytes.
"""

from __future__ import annotations

import math
import mmap
import os
import struct

from tasks.common.errors import InputError
from tasks.common.exported.wire_format import VARINT, FieldReader

# What paddle writes before a tensor: its version, levels of detail (none), another version, bytes of its description.
_HEADER = struct.Struct("<IQIi")
_DTYPE, _SIZES = 1, 2  # fields of the description
_BYTES = {0: 1, 1: 2, 2: 4, 3: 8, 4: 2, 5: 4, 6: 8, 20: 1, 21: 1, 22: 2}  # of a number, by the code of its dtype
_MOST_FIELDS = 5_000_000  # of all descriptions
_LONGEST_DESCRIPTION = 1000  # bytes


def check_weights(path: str | os.PathLike) -> None:
    """Raise InputError unless a file is tensors as paddle saves them together, each as large as it is said to be."""
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise ValueError("it is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                _walk(content)
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: is damaged or holds no weights ({error}); copy the whole folder again") from None


def _walk(content):
    reader = FieldReader(content, _MOST_FIELDS)
    start = 0
    while start < len(content):
        if start + _HEADER.size > len(content):
            raise ValueError("it is cut short")
        *versions, described = _HEADER.unpack_from(content, start)
        start += _HEADER.size
        if any(versions) or not 0 < described <= _LONGEST_DESCRIPTION or start + described > len(content):
            raise ValueError(f"no tensor begins at byte {start - _HEADER.size}")
        dtype, sizes = None, []
        for number, wire_type, place in reader.fields((start, start + described)):
            if wire_type != VARINT:
                raise ValueError(f"the tensor at byte {start} is described in another way")
            if number == _DTYPE:
                dtype = reader.number(place)
            elif number == _SIZES:
                sizes.append(reader.number(place))
        if dtype not in _BYTES:
            raise ValueError(f"the tensor at byte {start} is of no known dtype")
        start += described + math.prod(sizes) * _BYTES[dtype]
    if start > len(content):
        raise ValueError("it is cut short")
