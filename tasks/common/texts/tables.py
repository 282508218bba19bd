"""Tables with a header: values between commas (CSV) or tabs (TSV), as records.

CSV is quoted by ``"``, and a quoted value may have several lines. In TSV a row is a line, and quotes are removed only
around a value that has quotes inside, all of them doubled; any other quotes are ordinary characters.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.text_files import BLANKS, first_non_blank, shown

MAX_FIELD_CHARACTERS = 1 << 24  # in CSV, so that an unclosed quote is found before it fills the memory
TEXT = "text"
LABEL = "label"
TOKEN = "token"
TAG = "tag"
TOKENS = "tokens"
FIRST, SECOND = "sentence1", "sentence2"
# the names that a column may have, in lower case; the first one found in a header is used
NAMES = {
    TEXT: ("text", "sentence", "content", "body", "review", "comment", "query", "文本", "句子", "内容", "正文", "评论"),
    LABEL: ("label", "labels", "category", "class", "标签", "类别"),
    TOKEN: ("token", "word", "char", "character", "字", "字符", "词"),
    TOKENS: (TOKENS, "words", "chars"),  # all tokens of a text in one cell
    TAG: ("tag", "ner_tag", "ner", "label", "bio", "标签", "标注"),
    FIRST: (FIRST, "text1", "text_a", "query1", "question1", "q1"),
    SECOND: (SECOND, "text2", "text_b", "query2", "question2", "q2"),
}
_TRIPLE = {"A", "B", "C"}
_ALONE = ("text", "sentence", "文本")  # a header of one column
_LONGEST_NAME = 40
_QUOTED = re.compile('"[^"]*"')
ONE_TAG = r"(?:O|[BIMESLU][-_]\S+|\S+[-_][BIMESLU])"
IS_TAG = re.compile(rf"{ONE_TAG}\Z")
_NO_NAME = re.compile(".*[。，！？；：、“”!?;{}\\[\\]\x02]|[0-9.]+\\Z|(?:O|[BIMESLU]-\\S+)\\Z")


class Header(NamedTuple):
    """The first row of a table."""

    separator: str  # between values; ", " if each comma is followed by a space, which is dropped
    names: tuple[str, ...]  # of the columns, as they are in the file

    def column(self, meaning: str) -> int | None:
        """The number of the column of a text, label, token ...; None if there is none."""
        names = [name.lower() for name in self.names]
        return next((names.index(one) for one in NAMES[meaning] if one in names), None)

    def has(self, *meanings: str) -> bool:
        """Whether there is a column for each of the ``meanings``."""
        return all(self.column(meaning) is not None for meaning in meanings)


def header_of(line: str) -> Header | None:
    """A line as a header, or None: a header has short values, one of which names texts or tokens."""
    is_alone = line.strip(" \r").lower() in _ALONE
    if ("\t" not in line and "," not in line and not is_alone) or len(line) > 100 * _LONGEST_NAME:
        return None
    header = any_header(line)
    names = header.names
    if not names or not all(names[1:]) or any(len(name) > _LONGEST_NAME or _NO_NAME.match(name) for name in names):
        return None  # the first name may be empty, as pandas writes it above its index
    of_pairs = header.has(FIRST, SECOND) or set(names) >= _TRIPLE
    is_known = header.has(TEXT) or header.has(TOKEN, TAG) or header.has(TOKENS) or of_pairs
    return header if is_known else None


def any_header(line: str) -> Header:
    """A line as the header of a table, whatever its names; if its quotes are wrong, the line is the only name."""
    line = line.strip(" \r")
    separator = "\t" if "\t" in line else ", " if ", " in _QUOTED.sub("", line) else ","
    try:
        of_csv = csv.reader([line], strict=True, skipinitialspace=separator == ", ")
        cells = line.split(separator) if separator == "\t" else next(of_csv)
    except csv.Error:
        return Header(separator, (line,))
    return Header(separator, tuple(name.strip().strip('"') for name in cells))


def rows(lines: list[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Pairs (line from 1, values) of the rows after the header; blank lines have no values. Raises as
    :func:`values_of`."""
    first = next(number for number, line in enumerate(lines) if line.strip(BLANKS))
    header, number = any_header(lines[first]), first + 2
    check_names(header.names, f"{name}:{first + 1}")
    for row in split_rows((line + "\n" for line in lines[first + 1 :]), header):
        yield number, values_of(row, header, f"{name}:{number}")
        number += row.count("\n")


def split_rows(lines: Iterable[str], header: Header) -> Iterator[str]:
    """The text of each row, with its line ends. A row is one line, or several if CSV quotes a value with line ends."""
    if header.separator == "\t":
        yield from lines
        return
    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    taken: list[str] = []

    def noted():
        for line in lines:
            taken.append(line)
            yield line

    reader = csv.reader(noted(), strict=True, skipinitialspace=header.separator == ", ")
    while True:
        try:
            next(reader)
        except StopIteration:
            return
        except csv.Error:  # values_of finds the error again
            pass
        yield "".join(taken)
        taken.clear()


def values_of(row: str, header: Header, where: str) -> list[str]:
    """The values of a row; a blank line has none. Raises InputError if there are more or fewer than in the header, or
    the quotes are wrong; ``where`` is "path:line"."""
    if header.separator == "\t":
        line = row.removesuffix("\n")
        values = [_unquoted(value) for value in line.split("\t")] if line.strip(BLANKS) else []
    else:
        try:
            values = next(csv.reader([row], strict=True, skipinitialspace=header.separator == ", "))
        except csv.Error as error:
            raise InputError(f'{where}: broken CSV ({error}); quote values by " and double it inside') from None
    if values and len(values) != len(header.names):
        remedy = f"put a value with {header.separator[0]!r} in it between quotes"
        names = f"{len(header.names)} ({shown(', '.join(header.names))})"
        raise InputError(f"{where}: {len(values)} values, but the header has {names}; {remedy}")
    return values


def _unquoted(value):
    """A TSV value, unquoted if it has doubled quotes inside outer ones; any other value unchanged."""
    inner = value[1:-1]
    is_quoted = len(value) > 3 and value[0] == value[-1] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else value


def check_names(names: Sequence[str], where: str) -> None:
    """Raise InputError if two columns have the same name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where}: column {shown(twice)} is there twice; give each column its own name")


def table_records(lines: list[str], name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", dict from columns to strings) of the rows. The columns of texts and labels are called
    ``text``, ``label``, ``sentence1`` and ``sentence2``, whatever they are called in the file."""
    header = any_header(first_non_blank(lines))
    names = list(header.names)
    for meaning in (TEXT, LABEL, FIRST, SECOND):
        place = header.column(meaning)
        if place is not None:
            names[place] = meaning
    for number, values in rows(lines, name):
        if values:
            yield f"{name}:{number}", dict(zip(names, values))
