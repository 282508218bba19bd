"""What form a file of texts or records has. Its content decides, not its name: here, for every command.

* JSON lines: one object a line;
* a JSON list of objects, over one line or many; a member that is a string is a text, one that is a text and an object
  (as spaCy has it) is the object with the text;
* a table: CSV or TSV with a header;
* tagged text: one token and its tag a line;
* anything else is plain text, one text a line.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from enum import Enum

from tasks.common.errors import InputError
from tasks.common.texts.json_array import array_records
from tasks.common.texts.json_lines import json_records
from tasks.common.texts.tables import IS_TAG, header_of, table_records
from tasks.common.texts.text_files import BLANKS, first_non_blank


class Form(Enum):
    PLAIN = "plain text, one text a line"
    JSON_LINES = "JSON lines"
    JSON_LIST = "a JSON list"
    TABLE = "a table with a header"
    TAGGED = "tagged text, a token and its tag a line"


_OBJECT = re.compile(r'\{\s*["}]')
_LIST = re.compile(r'\[\s*(?:(?:\[\s*)*\{\s*["}]|(?:\[\s*)+"|"(?:[^"\\\n]|\\.)*"\s*[,\]]|\]\s*\Z)')
_JOINT = "\x02"  # between the tokens, and the tags, of a sentence in one line
LINES_TO_SEE = 50  # that are not blank
_FEWEST_TAGGED = 3  # lines: a text may end with an O


def form_of(lines: list[str]) -> Form:
    """The form of an input that has, or begins with, these lines, of which one is not blank.

    What may be a sentence is plain text: braces and brackets are JSON only where its objects, lists and strings follow.
    """
    lines = list(itertools.islice((line for line in lines if line.strip(BLANKS)), LINES_TO_SEE))
    head = "\n".join(lines).lstrip(BLANKS)
    if _OBJECT.match(head):
        return Form.JSON_LINES
    if _LIST.match(head):
        return Form.JSON_LIST
    if any(_is_sentence(line) for line in lines):
        return Form.TAGGED
    if header_of(lines[0]) is not None:
        return Form.TABLE
    return Form.TAGGED if len(lines) >= _FEWEST_TAGGED and all(map(_is_tagged, lines)) else Form.PLAIN


def _is_sentence(line):
    """Whether it is a sentence of tokens, a tab and their tags."""
    left, _, right = line.rpartition("\t")
    return _JOINT in left and all(map(IS_TAG.match, right.strip(BLANKS).split(_JOINT)))


def _is_tagged(line):
    line = line.rstrip(BLANKS)
    cut = max(line.rfind(" "), line.rfind("\t"))
    return cut > 0 and IS_TAG.match(line, cut + 1) is not None


def refused_tags(name: str) -> InputError:
    """What is said of tagged text where plain text is wanted."""
    return InputError(
        f"{name}:1: {Form.TAGGED.value}; write its texts with paddle-rope convert {name} texts.jsonl --to jsonl"
    )


def records(lines: list[str], name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", record) of JSON lines, of a JSON list, or of a table, where the values are strings."""
    first = first_non_blank(lines)
    if first is not None and first.strip(BLANKS).startswith("["):
        return array_records("\n".join(lines), name)
    if first is not None and header_of(first) is not None:
        return table_records(lines, name)
    return json_records(lines, name)
