"""Lines of a file or of standard input, read as they come and turned into what they hold.

The input is UTF-8 in lines that end with LF or CRLF; only the nothing after the last line end is no line.
"""

from __future__ import annotations

import os
import stat

from tasks.common.errors import InputError
from tasks.common.texts.text_files import BYTE_ORDER_MARK, STDIN, decode, open_bytes, open_stdin

READ_BYTES = 1 << 20


class LineStream:
    """What the lines of an input hold, in chunks; iterates once. A subclass says what that is.

    A chunk holds what one read of the input gave: for a pipe what its writer has written so far, so that somebody who
    writes a line and waits gets an answer, and up to ``READ_BYTES`` of a file or of a pipe that is full. No more than
    that and a line that has begun is held.

    Args:
        source: path, or ``-`` for standard input.
        chunk_items: items a chunk at most.

    Attributes:
        name: of the input, for messages.
        size: bytes of the input, None if it is not a file of known size.
        position: bytes of the lines read so far.
        lines: number of lines read so far.

    Raises:
        InputError: the input cannot be read; while iterating, it is empty or a line is wrong. The lines before the
            wrong one are given out first.
    """

    def __init__(self, source, chunk_items=2048):
        self._is_stdin = os.fspath(source) == STDIN
        self.name = "<stdin>" if self._is_stdin else os.fspath(source)
        self._input = open_stdin(self.name) if self._is_stdin else open_bytes(self.name)
        self.size = _size(self._input)
        self.position = 0
        self.lines = 0
        self._chunk_items = chunk_items

    def items_of(self, line, where):
        """List of what one more line, without its end, brings; ``where`` is "path:line"."""
        raise NotImplementedError

    def items_at_end(self):
        """List of what is left when all lines are read; raises InputError where they are not enough."""
        return []

    def __iter__(self):
        """Yields lists of items."""
        try:
            for lines in self._lines_at_hand():
                yield from self._chunks(lines)
        finally:
            if not self._is_stdin:
                self._input.close()
        if rest := self.items_at_end():
            yield rest

    def _lines_at_hand(self):
        """Yields lists of whole lines as bytes with their LF, as many as each read completes."""
        begun = []
        while block := self._read():
            *lines, rest = block.split(b"\n")
            if lines:
                lines[0] = b"".join([*begun, lines[0]])
                begun = []
                yield [line + b"\n" for line in lines]
            begun.append(rest)
        last = b"".join(begun)
        if last and not (self.lines == 0 and last == BYTE_ORDER_MARK.encode()):
            yield [last]

    def _read(self):
        try:
            return self._input.read1(READ_BYTES)
        except OSError as error:
            raise InputError(
                "{name}: cannot be read ({reason}); check the path", name=self.name, reason=error.strerror
            ) from None

    def _chunks(self, lines):
        chunk = []
        try:
            for line in lines:
                chunk += self._decoded_items(line)
                if len(chunk) >= self._chunk_items:
                    yield chunk
                    chunk = []
        except InputError:
            if chunk:
                yield chunk
            raise
        if chunk:
            yield chunk

    def _decoded_items(self, raw):
        self.lines += 1
        line = decode(raw, self.name, self.lines, self.position)
        self.position += len(raw)
        return self.items_of(line.removesuffix("\n").removesuffix("\r"), f"{self.name}:{self.lines}")


def _size(file):
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
