"""Texts to predict, read line by line as they come.

The input is UTF-8 in lines that end with LF or CRLF. If the first line that is not blank is a JSON object with a
``text``, or another key that the recipe has for it, the input is JSON lines: every line needs a string there (which may
be empty), other keys such as ``label`` are ignored and blank lines are skipped.

Otherwise it is plain text, one text a line, exactly as it stands without its line end. An empty line is an empty text,
so that results stay in line with the input; only the nothing after the last line end is no line.
"""

from __future__ import annotations

import json
import os
import stat

from tasks.common.errors import InputError
from tasks.common.json_lines import json_text, parse_line
from tasks.common.text_files import BLANKS, BYTE_ORDER_MARK, STDIN, decode, open_bytes, open_stdin

READ_BYTES = 1 << 20


class TextStream:
    """Texts of a file or of standard input in chunks; iterates once.

    A chunk holds what one read of the input gave: for a pipe what its writer has written so far, so that somebody who
    writes a line and waits gets an answer, and up to ``READ_BYTES`` of a file or of a pipe that is full. No more than
    that and a line that has begun is held.

    Args:
        source: path, or ``-`` for standard input.
        chunk_texts: texts a chunk at most.
        keys: under which JSON lines have their text; the first that a line has counts.

    Attributes:
        name: of the input, for messages.
        size: bytes of the input, None if it is not a file of known size.
        position: bytes of the lines read so far.

    Raises:
        InputError: the input cannot be read; while iterating, it is empty or a line is wrong. The lines before the
            wrong one are given out first.
    """

    def __init__(self, source, chunk_texts=2048, keys=("text",)):
        self._is_stdin = os.fspath(source) == STDIN
        self.name = "<stdin>" if self._is_stdin else os.fspath(source)
        self._input = open_stdin(self.name) if self._is_stdin else open_bytes(self.name)
        self.size = _size(self._input)
        self.position = 0
        self._chunk_texts = chunk_texts
        self._keys = keys
        self._lines = 0
        self._is_json = None  # until the first line that is not blank
        self._waiting = []  # the blank lines before it: texts in plain text, nothing in JSON lines

    def __iter__(self):
        """Yields lists of pairs (text, "path:line")."""
        try:
            for lines in self._lines_at_hand():
                yield from self._chunks(lines)
        finally:
            if not self._is_stdin:
                self._input.close()
        if self._lines == 0:
            raise InputError(
                f"{self.name}:1: the input is empty; give plain text, one text a line, or JSON lines with a text"
            )
        if self._waiting:  # nothing but blank lines
            yield self._waiting

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
        if last and not (self._lines == 0 and last == BYTE_ORDER_MARK.encode()):
            yield [last]

    def _read(self):
        try:
            return self._input.read1(READ_BYTES)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror}); check the path") from None

    def _chunks(self, lines):
        chunk = []
        try:
            for line in lines:
                chunk += self._texts_of(line)
                if len(chunk) >= self._chunk_texts:
                    yield chunk
                    chunk = []
        except InputError:
            if chunk:
                yield chunk
            raise
        if chunk:
            yield chunk

    def _texts_of(self, raw):
        """The texts that one more line brings: none, one, or also the blank lines that waited for it."""
        self._lines += 1
        where = f"{self.name}:{self._lines}"
        line = decode(raw, self.name, self._lines, self.position)
        self.position += len(raw)
        if line.endswith("\n"):
            line = line[:-1]
        if line.endswith("\r"):
            line = line[:-1]
        is_blank = not line.strip(BLANKS)
        if self._is_json is None and not is_blank:
            self._is_json = _is_json_text(line, self._keys)
            self._waiting = [] if self._is_json else self._waiting
        if self._is_json:
            return [] if is_blank else [(json_text(parse_line(line, where), where, self._keys), where)]
        self._waiting.append((line, where))
        if self._is_json is None:
            return []
        texts, self._waiting = self._waiting, []
        return texts


def _is_json_text(line, keys):
    if not line.strip(BLANKS).startswith("{"):
        return False
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and any(key in record for key in keys)


def _size(file):
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
