"""The weights of Paddle's graphs, checked before an engine reads them: it allocates whatever their headers say.

A file is one tensor after the other: version (uint32), levels of detail (uint64, 0 as in every dense tensor), version
(uint32), size of its description (int32), the description (a protocol buffer: number of the dtype, sizes), numbers.
"""

import math
import os
import struct

from google.protobuf.message import DecodeError

from paddle_rope.tasks.common.export.operators import message_class

_HEADER = struct.Struct("<IQIi")
_LONGEST_DESCRIPTION = 200  # bytes
# number of a dtype -> bytes: bool, int16, int32, int64, float16, float32, float64, uint8, int8, bfloat16
_BYTES = {0: 1, 1: 2, 2: 4, 3: 8, 4: 2, 5: 4, 6: 8, 20: 1, 21: 1, 22: 2}


def check_weights(path: str | os.PathLike) -> None:
    """Raise ValueError unless a file ``.pdiparams`` consists of whole tensors."""
    describe, whole = message_class(".pdiparams").FromString, os.path.getsize(path)
    with open(path, "rb") as file:
        while file.tell() < whole:
            begin = file.tell()
            header = file.read(_HEADER.size)
            *versions, size = _HEADER.unpack(header) if len(header) == _HEADER.size else (None, 0)
            if versions != [0, 0, 0] or not 0 < size <= _LONGEST_DESCRIPTION:
                raise ValueError(f"no tensor begins at byte {begin}")
            try:
                tensor = describe(file.read(size))
            except DecodeError:
                raise ValueError(f"the tensor at byte {begin} is not described") from None
            if len(tensor.dtype) != 1 or tensor.dtype[0] not in _BYTES or any(one < 1 for one in tensor.sizes):
                raise ValueError(f"the tensor at byte {begin} has no dtype or no sizes")
            needed = _BYTES[tensor.dtype[0]] * math.prod(tensor.sizes)
            if needed > whole - file.tell():
                raise ValueError(f"the tensor at byte {begin} needs more bytes than there are")
            file.seek(needed, os.SEEK_CUR)
