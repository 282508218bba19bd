"""Tags of flat named entities, BIO, BIOES and BMES: from tags to spans and back, from tokens to a text; and files with
one token and its tag a line.

A tag is ``O`` or ``<prefix>-<type>``; a parsed tag is the pair (prefix, type), ``("O", "")`` for ``O``.

* BIO: ``B-X`` begins an entity of type X, ``I-X`` continues it.
* BIOES: ``B-X`` begins, ``I-X`` continues and ``E-X`` ends an entity of type X, ``S-X`` is an entity of one token.
* BMES: the same with ``M-X`` for ``I-X``.

BILUO, with ``L-X`` for ``E-X`` and ``U-X`` for ``S-X``, is read as BIOES; ``B_X`` and ``X-B`` are read as ``B-X``.

Which column of such a file is the token and which the tag:

* two columns, separated by a space or tab: the token, which may be a blank, and its tag;
* more columns: the token is the first; the tag is the only column that holds a tag, or else the last (CoNLL);
* a table with a header; a sentence ends where the value in a sentence column changes, or at a row without a token.

Lines of ``-DOCSTART-`` end a sentence; comments, ``# ...``, may precede one. The raw files of Weibo number the
characters of each word ("科0", "技1"): the numbers are removed if nearly all tokens have them, and this module's log
says so, or warns if only some have them.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.tables import ONE_TAG, TAG, TOKEN, header_of, rows
from paddle_rope.tasks.common.texts.text_files import BLANKS, first_non_blank, shown

LIMIT = 40  # characters of a line that a message shows
_SENTENCE_COLUMNS = ("sentence #", "sentence_id", "sentence", "sent_id", "sentence_number", "句子", "句号")
_DOCUMENT = "-DOCSTART-"
_NEARLY_ALL, _MANY = 0.99, 0.1  # shares of numbered tokens from which numbers are removed, or reported
_BLANK_TOKEN = re.compile(r"[ \t]\d{1,4}", re.ASCII)  # a blank and its number: one token, not two columns
LINE_ENDS = "\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # of str.splitlines: a token may be one, a tag may hold none
_LOST_LINE_END = re.compile(rf"[ \t]{ONE_TAG}([{LINE_ENDS}])")
_SHAPE = "write one character, one space or tab and its tag, such as '中 B-LOC', and end a sentence with an empty line"
OUTSIDE = ("O", "")
_PREFIXES = dict(zip("BIMESLU", "BIMESES"))  # as a file may have them, and as they are parsed
_CONTINUING, _ENDING = frozenset("IME"), frozenset("ES")

logger = logging.getLogger(__name__)


class Scheme(NamedTuple):
    """The prefixes that a file's tags may have."""

    name: str
    inside: str  # the prefix that continues an entity
    closes: bool  # whether E- has to end an entity that B- began, and S- is an entity of one token

    @property
    def prefixes(self) -> str:
        return "OB" + self.inside + ("ES" if self.closes else "")

    def __str__(self) -> str:
        return f"{self.name.upper()} (O, {', '.join(f'{prefix}-X' for prefix in self.prefixes[1:])})"


BIO = Scheme("bio", "I", closes=False)
BIOES = Scheme("bioes", "I", closes=True)
BMES = Scheme("bmes", "M", closes=True)
SCHEMES = (BIO, BIOES, BMES)


def parse_tag(tag: str) -> tuple[str, str] | None:
    """(prefix, type) of a tag of any scheme, or None if it is not a tag."""
    if tag == "O":
        return OUTSIDE
    for prefix, separator, type_ in ((tag[:1], tag[1:2], tag[2:]), (tag[-1:], tag[-2:-1], tag[:-2])):
        if prefix in _PREFIXES and separator in ("-", "_") and type_.strip():
            return _PREFIXES[prefix], type_
    return None


def decode_tags(tags: list[tuple[str, str]], must_close: bool) -> tuple[list[tuple[int, int, str]], list[int]]:
    """Spans of one sentence's parsed tags, and the places where the tags are not well-formed.

    Spans are (start, end, type) in tokens, half-open, from left to right. ``must_close`` is True for BIOES and
    BMES, where an entity that ``B-`` began has to be ended by ``E-``.

    Sequences that are not well-formed are read by the convention of conlleval: an I, M or E that does not continue an
    entity of the same type begins a new one, and an entity that is not closed ends where its run of the same type ends.
    Each such place is returned as the index of the tag that cannot follow the one before it; ``len(tags)`` means the
    end of the sentence.
    """
    spans, faults = [], []
    start, open_type = None, ""
    for index, (prefix, type_) in enumerate(tags):
        if start is None and prefix == "O":
            continue
        if start is None or prefix not in _CONTINUING or type_ != open_type:
            if prefix in _CONTINUING or (must_close and start is not None):
                faults.append(index)
            if start is not None:
                spans.append((start, index, open_type))
            start = None if prefix == "O" else index
            open_type = type_
        if prefix in _ENDING:
            spans.append((start, index + 1, open_type))
            start = None
    if start is not None:
        spans.append((start, len(tags), open_type))
        if must_close:
            faults.append(len(tags))
    return spans, faults


def encode_tags(length: int, spans: Iterable[tuple[int, int, str]], scheme: Scheme) -> list[str]:
    """The tags of a sentence of ``length`` tokens; ``spans`` are (start, end, type) and do not overlap."""
    tags = ["O"] * length
    for start, end, type_ in spans:
        tags[start:end] = [f"{scheme.inside}-{type_}"] * (end - start)
        tags[start] = f"B-{type_}"
        if scheme.closes:
            tags[end - 1] = f"E-{type_}" if end - start > 1 else f"S-{type_}"
    return tags


def join_tokens(tokens: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text of tokens, and the half-open characters of each.

    A space separates ASCII letters and digits of neighboring tokens if one of the tokens has several characters, so
    that words stay apart, and letters of a word that are one token each stay together.
    """
    parts: list[str] = []
    offsets = []
    end, before = 0, ""
    for token in tokens:
        edges = before[-1:] + token[:1]
        if len(edges) == 2 and len(before) + len(token) > 2 and edges.isascii() and edges.isalnum():
            parts.append(" ")
            end += 1
        parts.append(token)
        offsets.append((end, end + len(token)))
        end, before = end + len(token), token
    return "".join(parts), offsets


# ---- files with one token and its tag a line


class Row(NamedTuple):
    """A token and its tag; at the end of a sentence both are empty."""

    line: int  # from 1
    token: str = ""
    tag: str = ""


def read_rows(lines: list[str], name: str) -> Iterator[Row]:
    """The rows of a file of tokens and tags; the tags are not checked. Raises InputError if a line has no token or no
    tag, or lines have different numbers of columns."""
    header = header_of(first_non_blank(lines) or "")
    return _of_table(lines, name, header) if header and header.has(TOKEN, TAG) else _of_lines(lines, name)


def _of_table(lines, name, header):
    token, tag = header.column(TOKEN), header.column(TAG)
    names = [one.lower() for one in header.names]
    sentence = next((names.index(one) for one in _SENTENCE_COLUMNS if one in names), None)
    before = None
    for number, values in rows(lines, name):
        if values and sentence is not None and values[sentence].strip():
            if before != values[sentence]:
                yield Row(number)
            before = values[sentence]
        if not values or not (values[token] or values[tag]):
            yield Row(number)
        elif not values[token] or not values[tag].strip():
            raise InputError(f"{name}:{number}: a row without a {TAG if values[token] else TOKEN}; give each token one")
        else:
            yield Row(number, values[token], values[tag].strip())


def _of_lines(lines: list[str], name: str) -> Iterator[Row]:
    columns = None  # (number of columns, index of the tag)
    is_begin = True  # of a sentence
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        lost = None if line.isprintable() else _LOST_LINE_END.search(line)
        if lost:
            raise InputError(
                f"{where}: expected a line end after the tag in {shown(lost[0].strip(BLANKS), LIMIT)}, "
                f"got {lost[1]!a}; end each line with LF or CRLF"
            )
        bare = line.rstrip(BLANKS)
        cut = max(bare.rfind(" "), bare.rfind("\t"))  # the last separator; the tag follows it
        token, tag = bare[: max(cut, 0)], bare[cut + 1 :]
        if (token and tag and token.startswith(_DOCUMENT)) or not line.strip(BLANKS):
            yield Row(number)
            is_begin = is_begin or not token
            continue
        if not token or not tag:
            missing = "no tag" if token or parse_tag(tag) is None else "no character before the tag"
            raise InputError(f"{where}: {missing} in {shown(token + tag, LIMIT)}; {_SHAPE}")
        if is_begin and line.startswith("# ") and parse_tag(tag) is None:
            continue
        is_begin = False
        has_blanks = len(token) > 1 and not set(BLANKS).isdisjoint(token) and not _BLANK_TOKEN.fullmatch(token)
        count, index = columns = columns or (_columns_of(line) if has_blanks else (2, 1))
        if count > 2:
            cells = _split(line)
            fits = len(cells) == count and cells[0]
            token, tag = (cells[0], cells[index]) if fits else (token, tag)
        else:
            fits = not has_blanks or parse_tag(tag) is None  # the reader reports the tag
        if not fits:
            raise InputError(
                f"{where}: expected {count} columns as in the lines before, got {shown(line, LIMIT)}; give all lines "
                "as many, with a space or tab between, the token first and the tag last"
            )
        yield Row(number, token, tag)


def _split(line):
    line = line.rstrip(BLANKS)
    return line.split("\t") if "\t" in line else line.split()


def _columns_of(line):
    """(number of columns of a line, index of the tag)."""
    cells = _split(line)
    tags = [index for index, cell in enumerate(cells) if index and parse_tag(cell) is not None]
    return len(cells), tags[0] if len(tags) == 1 else len(cells) - 1


def without_numbers(rows: Iterator[Row], name: str) -> list[Row]:
    """Rows without the numbers of characters in words, if nearly all tokens of the file have them."""
    found, bare, numbered = list(rows), [], []
    expected, has_inner = None, False  # the number of the next character of the word; whether a word has several
    for row in found:
        number = next((n for n in (expected, 0) if row.token[1:].endswith(str(n))), None)
        if number is None:
            bare.append(row)
            expected = expected + 1 if row.token and expected else None
            continue
        has_inner = has_inner or number == 1
        bare.append(row._replace(token=row.token.removesuffix(str(number))))
        if len(bare[-1].token) == 1:
            numbered.append(row)
        expected = number + 1
    tokens = sum(bool(row.token) for row in found)
    share = len(numbered) / max(tokens, 1)
    if not has_inner or share < _MANY:
        return found
    rest = "these numbers are removed"
    if share < _NEARLY_ALL:
        rest = "these numbers stay in the texts, because other tokens have none; remove them if they are places"
    logger.warning(
        f"{name}:{numbered[0].line}: {len(numbered)} of {tokens} tokens end with their place in a word, such as "
        f"{shown(numbered[0].token)}; {rest}"
    )
    return found if share < _NEARLY_ALL else bare
