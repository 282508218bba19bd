"""Texts to predict, read line by line as they come.

What the input is, its first lines say (:mod:`tasks.common.texts.forms`):

* JSON lines: every line needs a string under ``text``, or another key that the recipe has for it (which may be empty),
  other keys such as ``label`` are ignored and blank lines are skipped;
* a JSON list of such objects, or a table with such a column;
* plain text, one text a line, exactly as it stands without its line end. An empty line is an empty text, so that
  results stay in line with the input.
"""

from __future__ import annotations

import logging

from tasks.common.errors import InputError
from tasks.common.texts.forms import Form, refused_tags
from tasks.common.texts.json_lines import json_text, parse_line
from tasks.common.texts.line_stream import LineStream
from tasks.common.texts.text_files import BLANKS, read_text

logger = logging.getLogger(__name__)


class TextStream(LineStream):
    """Pairs (text, "path:line") of an input, see :class:`LineStream`. ``keys`` are those under which records have their
    text; the first that one has counts."""

    read_whole = (*LineStream.read_whole, Form.TAGGED)

    def __init__(self, source, chunk_items=2048, keys=("text",)):
        super().__init__(source, chunk_items)
        self._keys = keys
        self._waiting = []  # blank lines before the first other: texts in plain text, nothing in JSON lines

    def text_of(self, record, where):
        """The text of a record."""
        return json_text(record, where, self._keys)

    def texts_of_tagged(self, lines):
        """Pairs (text, "path:line") of the lines of tagged text."""
        raise refused_tags(self.name)

    def items_of(self, line, where):
        """The texts that one more line brings: none, one, or also the blank lines that waited for it."""
        if self.form is Form.JSON_LINES:
            return self.items_of_record(parse_line(line, where), where) if line.strip(BLANKS) else []
        self._waiting.append((line, where))
        if self.form is None:
            return []
        texts, self._waiting = self._waiting, []
        return texts

    def items_of_record(self, record, where):
        return [(self.text_of(record, where), where)]

    def items_of_whole(self, lines):
        texts = self.texts_of_tagged(lines) if self.form is Form.TAGGED else super().items_of_whole(lines)
        if not texts:
            raise InputError(f"{self.name}:1: {self.form.value} without a text; give texts")
        plural = "" if len(texts) == 1 else "s"
        logger.warning("%s: read as %s, %d text%s", self.name, self.form.value, len(texts), plural)
        return texts

    def items_at_end(self):
        if self.lines == 0:
            raise InputError(
                f"{self.name}:1: the input is empty; give plain text, one text a line, or JSON lines with a text"
            )
        return self._waiting if self.form is None else []  # nothing but blank lines


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
                raise InputError(f"{name}:1: the file is empty; give a file with text")
            yield [(content, name)]
