"""The encoding of protocol buffers (https://protobuf.dev/programming-guides/encoding), read without their package.

Only what the graphs of exported models are made of: numbers, bytes and messages; no groups.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_LONGEST_TAG, _LONGEST_VARINT = 5, 10  # bytes
Buffer = bytes | mmap.mmap
Place = tuple[int, int]  # first byte of a field's content, and the byte behind it


class FieldReader:
    """Reads the fields of messages within a buffer; contents are skipped, not copied.

    Args:
        buffer: an encoded message.
    """

    def __init__(self, buffer: Buffer):
        self.buffer = buffer

    def fields(self, place: Place) -> Iterator[tuple[int, int, Place]]:
        """(number, wire type, place of the content) of each field of the message at a place.

        Raises:
            ValueError: this is no message.
        """
        start, end = place
        while start < end:
            tag, start = self._varint(start, end, _LONGEST_TAG)
            number, wire_type = tag >> 3, tag & 7
            if wire_type == VARINT:
                _, behind = self._varint(start, end, _LONGEST_VARINT)
            elif wire_type == BYTES:
                length, start = self._varint(start, end, _LONGEST_VARINT)
                behind = start + length
            elif wire_type in _FIXED_SIZES:
                behind = start + _FIXED_SIZES[wire_type]
            else:
                raise ValueError(f"wire type {wire_type} is not one of a graph")
            if behind > end:
                raise ValueError("a field ends behind its message")
            yield number, wire_type, (start, behind)
            start = behind

    def number(self, place: Place) -> int:
        """The number of a field of wire type ``VARINT``."""
        return self._varint(*place, _LONGEST_VARINT)[0]

    def text(self, place: Place, longest: int = 200) -> str:
        """The text of a field of wire type ``BYTES``; raises ValueError if it has more than ``longest`` bytes."""
        start, end = place
        if end - start > longest:
            raise ValueError(f"a name has {end - start} bytes")
        return self.buffer[start:end].decode("utf-8")

    def _varint(self, start, end, longest):
        """(value, byte behind it)."""
        value = 0
        for count in range(longest):
            if start + count >= end:
                break
            byte = self.buffer[start + count]
            value |= (byte & 0x7F) << (7 * count)
            if byte < 0x80:
                return value, start + count + 1
        raise ValueError("a number is cut short or too long")
