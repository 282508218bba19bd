"""Lines of a file or of standard input, read as they come and turned into what they hold.

The input is UTF-8 in lines that end with LF or CRLF; only the nothing after the last line end is no line. What its
first lines are decides its form, see :mod:`tasks.common.texts.forms`: a JSON list and a table are read whole before
anything is given out.
"""

from __future__ import annotations

import itertools
import os
import stat

from tasks.common.errors import InputError
from tasks.common.texts.forms import LINES_TO_SEE, Form, form_of, records
from tasks.common.texts.packed import Unpacked, opened
from tasks.common.texts.text_files import BLANKS, BYTE_ORDER_MARK, STDIN, decode, open_bytes, open_stdin

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
        form: of the input; None until a line that is not blank is at hand.

    Raises:
        InputError: the input cannot be read; while iterating, it is empty or a line is wrong. The lines before the
            wrong one are given out first.
    """

    read_whole = (Form.JSON_LIST, Form.TABLE)  # forms whose lines alone mean nothing

    def __init__(self, source, chunk_items=2048):
        self._is_stdin = os.fspath(source) == STDIN
        self.name = "<stdin>" if self._is_stdin else os.fspath(source)
        self._input = open_stdin(self.name) if self._is_stdin else open_bytes(self.name)
        self.size = _size(self._input)
        self.position = 0
        self.lines = 0
        self.form = None
        self._chunk_items = chunk_items
        self._is_opened = False
        self._collected = []  # the lines of a form that is read whole, and those before its form is known

    def items_of(self, line, where):
        """List of what one more line, without its end, brings; ``where`` is "path:line"."""
        raise NotImplementedError

    def form_of(self, lines):
        """The form of an input that begins with these lines, none of which is blank."""
        return form_of(lines)

    def items_of_whole(self, lines):
        """List of what the lines of a form that is read whole bring."""
        found = self.records_of(lines)
        return [item for where, record in found for item in self.items_of_record(record, where)]

    def records_of(self, lines):
        """Pairs ("path:line", record) of the lines of a JSON list or a table."""
        return records(lines, self.name)

    def items_of_record(self, record, where):
        """List of what a record brings; of a table, its values are strings."""
        raise NotImplementedError

    def items_at_end(self):
        """List of what is left when all lines are read; raises InputError where they are not enough."""
        return []

    def __iter__(self):
        """Yields lists of items."""
        try:
            for lines in self._lines_at_hand():
                self._recognize(lines)
                yield from self._chunks(lines)
        finally:
            if not self._is_stdin:
                self._input.close()
        rest = self.items_of_whole(self._collected) if self.form in self.read_whole else []
        rest += self.items_at_end()
        for begin in range(0, len(rest), self._chunk_items):
            yield rest[begin : begin + self._chunk_items]

    def _recognize(self, lines):
        """Find the form, if it is not known, from lines that are at hand."""
        if self.form is None:
            decoded = (line.decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK).rstrip("\r\n") for line in lines)
            seen = list(itertools.islice((line for line in decoded if line.strip(BLANKS)), LINES_TO_SEE))
            if seen:
                self.form = self.form_of(seen)

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
            if not self._is_opened:
                self._input, self._is_opened = opened(self._input, self.name), True
                self.size = None if isinstance(self._input, Unpacked) else self.size
            return self._input.read1(READ_BYTES)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror}); check the path") from None

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
        line = line.removesuffix("\n").removesuffix("\r")
        if self.form is None or self.form in self.read_whole:
            self._collected.append(line)
            if self.form is not None:
                return []
        return self.items_of(line, f"{self.name}:{self.lines}")


def _size(file):
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
