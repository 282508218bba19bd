"""Texts of a file or of standard input, read as they come.

The first lines decide the form of the input, see :mod:`paddle_rope.tasks.common.texts.forms`. A JSON list, a table and
tagged text are read whole before any item is yielded.
"""

import logging
import os
import sys

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.forms import Form, form_of_file, records
from paddle_rope.tasks.common.texts.json_records import json_text, parse_line
from paddle_rope.tasks.common.texts.text_files import (
    BLANKS,
    BYTE_ORDER_MARK,
    GZIP,
    STDIN,
    blocks,
    decode,
    file_size,
    open_input,
    read_text,
    reading,
    split_lines,
)

logger = logging.getLogger(__name__)


class TextStream:
    """Items of an input, in chunks; can be iterated once. An item is a pair (text, "path:line"), unless a subclass says
    otherwise.

    The text of a record is the string under the first of ``keys`` that it has; each line of plain text, even an empty
    one, is a text exactly as it is, so that results stay aligned with the input. Tagged text is refused.

    A chunk has the items of one read, at most ``chunk_items``: from a pipe whatever has been written so far, so that a
    user who types a line gets an answer, and from a file up to ``READ_BYTES``. Raises InputError if the input cannot be
    read or is empty, or for a wrong line, after the items before it have been yielded.
    """

    read_whole = (Form.JSON_LIST, Form.TABLE, Form.TAGGED)  # forms that cannot be read line by line

    def __init__(self, source, chunk_items=2048, keys=("text",)):
        self._is_stdin = os.fspath(source) == STDIN
        self._input, self.name = open_input(source)  # the name is for messages
        with reading(self.name):
            self.size = file_size(self._input)  # in bytes; None for a pipe, and for gzip
            if self.size and self._input.peek(len(GZIP)).startswith(GZIP):
                self.size = None
        if self._is_stdin and self._input.isatty():
            print("reading texts, one a line, until Ctrl-D (--input FILE reads a file)", file=sys.stderr)
        self.position = self.lines = 0  # bytes and number of the lines read so far
        self.form = None  # until a line that is not blank has been read
        self._chunk_items, self._keys = chunk_items, keys

    def form_of(self, lines):
        """The form of an input that begins with these lines."""
        return form_of_file(lines, self.name)

    def items_of(self, line, where):
        """List of the items of a line without its end; ``where`` is "path:line"."""
        if self.form is not Form.JSON_LINES:
            return [(line, where)]
        return self.items_of_record(parse_line(line, where), where) if line.strip(BLANKS) else []

    def items_of_record(self, record, where):
        """List of the items of a record; the values of a table are strings."""
        return [(json_text(record, where, self._keys), where)]

    def records_of(self, lines):
        """Pairs ("path:line", record) of all lines of a list or table."""
        return records(lines, self.name, self.form)

    def items_of_tagged(self, lines):
        """List of the items of all lines of tagged text."""
        remedy = f"write its texts with paddle-rope convert {self.name} texts.jsonl --to jsonl"
        raise InputError(f"{self.name}:1: {self.form.value}; {remedy}")

    def _items_of_whole(self, lines):
        if self.form is Form.TAGGED:
            items = self.items_of_tagged(lines)
        else:
            items = [one for where, record in self.records_of(lines) for one in self.items_of_record(record, where)]
        if not items:
            raise InputError(f"{self.name}:1: {self.form.value} without a text; give texts")
        logger.warning("%s: read as %s, texts: %d", self.name, self.form.value, len(items))
        return items

    def check_end(self):
        """Raise InputError if the lines of the input were not enough."""
        if self.lines == 0:
            remedy = "give plain text, one text a line, or JSON lines with a text"
            raise InputError(f"{self.name}:1: the input is empty; {remedy}")

    def __iter__(self):
        """Yields lists of items."""
        held = []  # lines of a form that is read whole, and the first lines, before the form is known
        seen = []  # of the first lines, those that are not blank
        try:
            for lines in self._lines_as_they_come():
                held += lines
                if self.form is None:
                    begin = b"".join(lines).decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)
                    new = [line for line in split_lines(begin) if line.strip(BLANKS)]
                    seen += new
                    if any(line.strip(BLANKS + "[{") for line in new):  # a pipe may bring the brackets of a list first
                        self.form = self.form_of(seen)
                if self.form is not None and self.form not in self.read_whole:
                    yield from self._chunks(held)
                    held = []
        finally:
            if not self._is_stdin:
                self._input.close()
        if self.form in self.read_whole:
            items = self._items_of_whole([self._next_line(line)[0] for line in held])
            for begin in range(0, len(items), self._chunk_items):
                yield items[begin : begin + self._chunk_items]
        else:
            yield from self._chunks(held)
        self.check_end()

    def _lines_as_they_come(self):
        """Yields lists of whole lines as bytes with their LF, as many as each read completes."""
        begun = []
        for block in blocks(self._input, self.name):
            *lines, rest = block.split(b"\n")
            if lines:
                lines[0] = b"".join([*begun, lines[0]])
                begun = []
                yield [line + b"\n" for line in lines]
            begun.append(rest)
        last = b"".join(begun)
        if last and not (self.lines == 0 and last == BYTE_ORDER_MARK.encode()):
            yield [last]

    def _chunks(self, lines):
        chunk = []
        try:
            for line in lines:
                chunk += self.items_of(*self._next_line(line))
                if len(chunk) >= self._chunk_items:
                    yield chunk
                    chunk = []
        except InputError:
            if chunk:
                yield chunk
            raise
        if chunk:
            yield chunk

    def _next_line(self, raw):
        """A line without its end, and "path:line"."""
        self.lines += 1
        line = decode(raw, self.name, self.lines, self.position)
        self.position += len(raw)
        return line.removesuffix("\n").removesuffix("\r"), f"{self.name}:{self.lines}"


class FileStream:
    """The content of each of ``paths``, UTF-8 files or ``-``, as one text with its line ends, one chunk per file;
    ``name`` and ``size`` are as in :class:`TextStream`, but the size is always None, for unknown."""

    size = None

    def __init__(self, paths):
        self._paths = list(paths)
        self.name = ", ".join(map(str, self._paths))

    def __iter__(self):
        for path in self._paths:
            content, name = read_text(path)
            if not content:
                raise InputError(f"{name}:1: the file is empty; give a file with text")
            yield [(content, name)]
