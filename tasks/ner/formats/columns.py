"""Files with a token a line: which column is the token, which the tag, and what is neither.

* two columns, separated by a space or tab: the token, which may be a blank, and its tag;
* more columns, all lines as many: the token is the first; the tag is the last, or the only one of tags (CoNLL);
* a table with a header that names token and tag; a sentence ends where a column of sentences changes, or at a row
  without a token.

Lines of ``-DOCSTART-`` end a sentence, and comments, ``# ...``, stand before one. The numbers of Weibo's raw files, the
place of each character in its word ("科0", "技1"), are taken off where nearly all tokens have them; this module's log
says so, and warns where only some have them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import NamedTuple

from tasks.common.errors import InputError
from tasks.common.texts.tables import TAG, TOKEN, header_of, rows
from tasks.common.texts.text_files import BLANKS, first_non_blank, shown
from tasks.ner.formats.tagging import parse_tag

LIMIT = 40  # characters of a line that a message shows
_SEPARATORS = frozenset(BLANKS)
_SENTENCE_COLUMNS = ("sentence #", "sentence_id", "sentence", "sent_id", "sentence_number", "句子", "句号")
_DOCUMENT = "-DOCSTART-"
_NEARLY_ALL, _MANY = 0.99, 0.1  # tokens of a file that end with their places: these are taken off, or warned of
_MARKED_BLANK = re.compile(r"[ \t]\d{1,4}", re.ASCII)  # one token, not two columns
LINE_ENDS = "\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # of str.splitlines; a token may be one, a tag may hold none
_LOST_LINE_END = re.compile(rf"[ \t](?:O|[BIMES]-\S+)([{LINE_ENDS}])")

logger = logging.getLogger(__name__)


class Row(NamedTuple):
    """A token and its tag; where a sentence ends, both are empty."""

    line: int  # from 1
    token: str
    tag: str


def split_tag(line: str) -> tuple[str, str]:
    """Token and tag of a line, split at the last space or tab before the tag; the token is empty if there is none."""
    line = line.rstrip(BLANKS)
    cut = max(line.rfind(" "), line.rfind("\t"))
    return line[: max(cut, 0)], line[cut + 1 :]


def read_rows(lines: list[str], name: str, tells: bool = True) -> list[Row]:
    """The rows of a file of tokens and tags; the tags are not checked. ``tells``: of numbers that are taken off.

    Raises:
        InputError: a line has no token or no tag, or lines have different numbers of columns.
    """
    first = first_non_blank(lines)
    header = first and header_of(first)
    is_table = header and header.has(TOKEN, TAG)
    return _without_marks(list(_of_table(lines, name, header) if is_table else _of_lines(lines, name)), name, tells)


def _of_table(lines, name, header):
    token, tag = header.column(TOKEN), header.column(TAG)
    names = [one.lower() for one in header.names]
    sentence = next((names.index(one) for one in _SENTENCE_COLUMNS if one in names), None)
    before = None
    for number, values in rows(lines, name):
        if values and sentence is not None and values[sentence].strip():
            if before != values[sentence]:
                yield Row(number, "", "")
            before = values[sentence]
        if not values or not (values[token] or values[tag]):
            yield Row(number, "", "")
        elif not values[token] or not values[tag].strip():
            raise InputError(f"{name}:{number}: a row without a {TAG if values[token] else TOKEN}; give each token one")
        else:
            yield Row(number, values[token], values[tag].strip())


def _of_lines(lines: list[str], name: str) -> Iterator[Row]:
    columns = None  # (how many, of which the tag)
    at_begin = True  # of a sentence
    for number, line in enumerate(lines, 1):
        lost = None if line.isprintable() else _LOST_LINE_END.search(line)
        if lost:
            raise InputError(
                f"{name}:{number}: expected a line end after the tag in {shown(lost[0].strip(BLANKS), LIMIT)}, "
                f"got {lost[1]!a}; end each line with LF or CRLF"
            )
        token, tag = split_tag(line)
        if not token or not tag:
            if line.strip(BLANKS):
                missing = "no tag" if token or parse_tag(tag) is None else "no character before the tag"
                raise InputError(
                    f"{name}:{number}: {missing} in {shown(token + tag, LIMIT)}; write one character, one space or "
                    "tab and its tag, such as '中 B-LOC', and end a sentence with an empty line"
                )
            yield Row(number, "", "")
            at_begin = True
            continue
        if at_begin and line.startswith("# ") and parse_tag(tag) is None:
            continue
        if token.startswith(_DOCUMENT):
            yield Row(number, "", "")
            continue
        at_begin = False
        several = len(token) > 1 and not _SEPARATORS.isdisjoint(token) and not _MARKED_BLANK.fullmatch(token)
        if columns is None:
            columns = _columns_of(line) if several else (2, 1)
        if columns[0] > 2:
            token, tag = _cells(line, columns, f"{name}:{number}")
        elif several and parse_tag(tag) is not None:  # else the reader complains of the tag
            raise InputError(
                f"{name}:{number}: more than two columns in {shown(line, LIMIT)}; keep one character and its tag, "
                "with one space or tab between, or give all lines as many columns"
            )
        yield Row(number, token, tag)


def _columns_of(line):
    """How many columns a line has, and which of them is the tag."""
    cells = _split(line)
    tags = [place for place, cell in enumerate(cells) if place and parse_tag(cell) is not None]
    return len(cells), tags[0] if len(tags) == 1 else len(cells) - 1


def _split(line):
    line = line.rstrip(BLANKS)
    return line.split("\t") if "\t" in line else line.split()


def _cells(line, columns, where):
    count, place = columns
    cells = _split(line)
    if len(cells) != count or not cells[0]:
        raise InputError(
            f"{where}: {len(cells)} columns in {shown(line, LIMIT)}, and {count} in the lines before; give all lines "
            "as many columns, the token first and the tag last"
        )
    return cells[0], cells[place]


def _without_marks(found, name, tells):
    """Rows without the places of characters in words, if nearly all tokens of the file have them."""
    expected, inner = None, False
    bare, fitting, tokens = [], [], 0
    for row in found:
        place = None
        tokens += bool(row.token)
        if len(row.token) > 1:
            place = next((n for n in (expected, 0) if row.token[1:].endswith(str(n))), None)
        if place is not None:
            inner = inner or place == 1
            bare.append(row._replace(token=row.token.removesuffix(str(place))))
            if len(bare[-1].token) == 1:
                fitting.append(row)
            expected = place + 1
        else:
            bare.append(row)
            expected = expected + 1 if row.token and expected else None
    share = len(fitting) / max(tokens, 1)
    if not inner or share < _MANY:
        return found
    if tells:
        rest = "these numbers are taken off"
        if share < _NEARLY_ALL:
            rest = "these numbers stay in the texts, because other tokens have none; remove them if they are places"
        logger.warning(
            f"{name}:{fitting[0].line}: {len(fitting)} of {tokens} tokens end with their place in a word, such as "
            f"{shown(fitting[0].token)}; {rest}"
        )
    return found if share < _NEARLY_ALL else bare
