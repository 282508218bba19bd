"""The form of a file of texts or records. Its content decides, not its name.

* JSON lines: one object a line;
* a JSON list of objects, on one line or several, also under "data" of an object, see ``list_records``;
* a table: CSV or TSV with a header;
* tagged text: one token and its tag a line, or a whole sentence, a tab and its tags;
* anything else is plain text, one text a line.
"""

import itertools
import os
import re
from collections.abc import Iterator
from enum import Enum

from paddle_rope.tasks.common.texts.json_records import UNDER_DATA, line_records, list_records
from paddle_rope.tasks.common.texts.tables import IS_TAG, header_of, table_records
from paddle_rope.tasks.common.texts.text_files import BLANKS


class Form(Enum):
    PLAIN = "plain text, one text a line"
    JSON_LINES = "JSON lines"
    JSON_LIST = "a JSON list"
    TABLE = "a table with a header"
    TAGGED = "tagged text, a token and its tag a line"


PROMISED = {".json": Form.JSON_LINES, ".jsonl": Form.JSON_LINES, ".csv": Form.TABLE, ".tsv": Form.TABLE}
_OBJECT = re.compile(r'\{\s*["}]')
_LIST = re.compile(r'\[\s*(?:(?:\[\s*)*\{\s*["}]|(?:\[\s*)+"|"(?:[^"\\\n]|\\.)*"\s*[,\]]|\]\s*\Z)')
JOINT = "\x02"  # between the tokens, and the tags, of a sentence in one line
LINES_TO_SEE = 50  # non-blank ones
_FEWEST_TAGGED = 3  # lines; in fewer, a text may happen to end with an O


def form_of(lines: list[str]) -> Form:
    """The form of an input that consists of or begins with these lines. Lines that may be sentences are plain text:
    braces and brackets are JSON only before its objects, lists and strings."""
    lines = list(itertools.islice((line for line in lines if line.strip(BLANKS)), LINES_TO_SEE))
    head = "\n".join(lines).lstrip(BLANKS)
    if UNDER_DATA.match(head) or _LIST.match(head):
        return Form.JSON_LIST
    if _OBJECT.match(head):
        return Form.JSON_LINES
    if any(_is_sentence(line) for line in lines):
        return Form.TAGGED
    if lines and header_of(lines[0]) is not None:
        return Form.TABLE
    return Form.TAGGED if len(lines) >= _FEWEST_TAGGED and all(map(_is_tagged, lines)) else Form.PLAIN


def form_of_file(lines: list[str], name: str) -> Form:
    """As :func:`form_of`, for the first lines of a file. If they are not records, the ending of its ``name`` may still
    announce records, so that a broken file of records is not taken for plain text."""
    form, ending = form_of(lines), os.path.splitext(name.removesuffix(".gz"))[1]
    return PROMISED.get(ending, form) if form in (Form.PLAIN, Form.TAGGED) else form


def _is_sentence(line):
    """Whether a line is a sentence: tokens, a tab and their tags."""
    left, _, right = line.rpartition("\t")
    return JOINT in left and all(map(IS_TAG.match, right.strip(BLANKS).split(JOINT)))


def _is_tagged(line):
    line = line.rstrip(BLANKS)
    cut = max(line.rfind(" "), line.rfind("\t"))
    return cut > 0 and IS_TAG.match(line, cut + 1) is not None


def records(lines: list[str], name: str, form: Form | None = None) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", record) of lines in a :class:`Form` of records, by default the form of the lines; the values
    of a table are strings."""
    form = form or form_of(lines)
    if form is Form.JSON_LIST:
        return list_records("\n".join(lines), name)
    if form is Form.TABLE:
        return table_records(lines, name)
    return line_records(lines, name)
