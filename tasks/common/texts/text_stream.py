"""Texts to predict, read line by line as they come.

If the first line that is not blank is a JSON object with a ``text``, or another key that the recipe has for it, the
input is JSON lines: every line needs a string there (which may be empty), other keys such as ``label`` are ignored and
blank lines are skipped.

Otherwise it is plain text, one text a line, exactly as it stands without its line end. An empty line is an empty text,
so that results stay in line with the input.
"""

from __future__ import annotations

import json

from tasks.common.errors import InputError
from tasks.common.texts.json_lines import json_text, parse_line
from tasks.common.texts.line_stream import LineStream
from tasks.common.texts.text_files import BLANKS, read_text


class TextStream(LineStream):
    """Pairs (text, "path:line") of an input, see :class:`LineStream`. ``keys`` are those under which JSON lines have
    their text; the first that a line has counts."""

    def __init__(self, source, chunk_items=2048, keys=("text",)):
        super().__init__(source, chunk_items)
        self._keys = keys
        self._is_json = None  # until the first line that is not blank
        self._waiting = []  # the blank lines before it: texts in plain text, nothing in JSON lines

    def items_of(self, line, where):
        """The texts that one more line brings: none, one, or also the blank lines that waited for it."""
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

    def items_at_end(self):
        if self.lines == 0:
            raise InputError(
                "{name}:1: the input is empty; give plain text, one text a line, or JSON lines with a text",
                name=self.name,
            )
        return self._waiting  # nothing but blank lines


def _is_json_text(line, keys):
    if not line.strip(BLANKS).startswith("{"):
        return False
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and any(key in record for key in keys)


class FileStream:
    """The whole of each file as one text with its line ends, as a stream of one chunk a file.

    Args:
        paths: UTF-8 files; ``-`` is standard input.

    Attributes:
        name, size, position: as of :class:`LineStream`; there is no size.

    Raises:
        InputError: while iterating, a file cannot be read or is empty.
    """

    size = None
    position = 0

    def __init__(self, paths):
        self._paths = list(paths)
        self.name = ", ".join(map(str, self._paths))

    def __iter__(self):
        for path in self._paths:
            content, name = read_text(path)
            if not content:
                raise InputError("{name}:1: the file is empty; give a file with text", name=name)
            yield [(content, name)]
