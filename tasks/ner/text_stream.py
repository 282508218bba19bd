"""Texts to predict, read line by line as they come.

The rules are those of :func:`tasks.ner.data.read_texts`: UTF-8 lines that end with LF or CRLF; JSON lines if the first
line that is not blank is a JSON object with a ``text``, otherwise plain text, one text a line. Blank lines before that
first one wait for it, because they are texts in plain text and nothing in JSON lines.
"""

from __future__ import annotations

import io
import os
import stat
import sys

from tasks.common.errors import InputError
from tasks.ner.data import STDIN, _is_json_text, _json_text, _parse_json
from tasks.ner.tagging import BLANKS

READ_BYTES = 1 << 20


class TextStream:
    """Texts of a file or of standard input in chunks; iterates once.

    A chunk holds what one read of the input gave: for a pipe what its writer has written so far, so that somebody who
    writes a line and waits gets an answer, and up to ``READ_BYTES`` of a file or of a pipe that is full. No more than
    that is held.

    Args:
        source: path, or ``-`` for standard input.
        chunk_texts: texts a chunk at most.

    Attributes:
        size: bytes of the input, None if it is not a file of known size.
        position: bytes of the lines read so far.

    Raises:
        InputError: the input cannot be read; while iterating, it is empty or a line is wrong. The lines before the
            wrong one are given out first.
    """

    def __init__(self, source, chunk_texts=2048):
        self._is_stdin = os.fspath(source) == STDIN
        self.name = "<stdin>" if self._is_stdin else os.fspath(source)
        self._input = _open_stdin(self.name) if self._is_stdin else _open(self.name)
        self.size = _size(self._input)
        self.position = 0
        self._chunk_texts = chunk_texts
        self._lines = 0
        self._is_json = None
        self._waiting = []  # blank lines while the format is not known

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
        yield from self._chunks([], at_end=True)

    def _lines_at_hand(self):
        """Yields lists of whole lines as bytes without LF, as many as each read completes."""
        begun = []
        while block := self._read():
            *lines, rest = block.split(b"\n")
            if lines:
                lines[0] = b"".join([*begun, lines[0]])
                begun = []
                yield lines
            begun.append(rest)
        last = b"".join(begun)
        if last.removeprefix(b"\xef\xbb\xbf" if self._lines == 0 else b""):
            yield [last]

    def _read(self):
        try:
            return self._input.read1(READ_BYTES)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror}); check the path") from None

    def _chunks(self, lines, at_end=False):
        chunk = []
        try:
            for line in lines:
                chunk += self._texts_of(line)
                if len(chunk) >= self._chunk_texts:
                    yield chunk
                    chunk = []
            if at_end and not self._is_json:
                chunk += self._waiting
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
        line = _decode_line(raw, self.name, self._lines, self.position)
        self.position += len(raw) + 1
        line = line[:-1] if line.endswith("\r") else line
        is_blank = not line.strip(BLANKS)
        if self._is_json is None and not is_blank:
            self._is_json = _is_json_text(line)
        if self._is_json:
            self._waiting = []
            return [] if is_blank else [(_json_text(_parse_json(line, where), where), where)]
        if self._is_json is None:
            self._waiting.append((line, where))
            return []
        texts, self._waiting = [*self._waiting, (line, where)], []
        return texts


def _open(name):
    if os.path.isdir(name):
        raise InputError(f"{name}: is a directory; give the path of a file in it")
    try:
        return open(name, "rb")
    except FileNotFoundError:
        raise InputError(f"{name or repr(name)}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: cannot be read ({reason}); check the path and its permissions") from None


def _open_stdin(name):
    if sys.stdin is None:
        raise InputError(f"{name}:1: standard input is closed; pipe text into it or give the path of a file")
    if hasattr(sys.stdin, "buffer"):
        return sys.stdin.buffer
    return io.BytesIO(sys.stdin.read().encode("utf-8"))  # replaced by a stream of text


def _size(file):
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _decode_line(raw, name, number, position):
    """UTF-8 to text, without the byte order mark of the first line."""
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        encoding = "utf-16" if number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "gb18030"
        raise InputError(
            f"{name}:{number}: not UTF-8 (byte {position + error.start} of the input); convert it, "
            f"e.g. iconv -f {encoding} -t utf-8 OLD > NEW"
        ) from None
    return line.removeprefix("\ufeff") if number == 1 else line
