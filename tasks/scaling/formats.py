"""Files of records, each cut into parts and read a part at a time: plain text, JSON lines, CSV and Parquet.

A record is a line of plain text or of JSON lines, or a row of CSV or Parquet. An error in one record is returned in its
place and stops nothing. Only a file that cannot be read at all raises ``InputError``.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tasks.common import files
from tasks.common.errors import InputError, reason_of
from tasks.common.texts.forms import Form, form_of
from tasks.common.texts.json_records import parse_line
from tasks.common.texts.tables import MAX_FIELD_CHARACTERS, check_names
from tasks.common.texts.text_files import (
    BLANKS,
    BYTE_ORDER_MARK,
    decode,
    first_non_blank,
    open_bytes,
    reading,
    split_lines,
    unpacked,
)

PARQUET_ROWS = 1024  # read at once
HEAD_BYTES = 1 << 14  # in which the form of a file is recognized

Keys = tuple[tuple[str, ...], ...]


class Part(NamedTuple):
    """Successive records of one file, which become one file of results."""

    number: int  # from 0
    path: str
    first: int  # record, from 1; the header of CSV is none
    last: int  # inclusive
    offset: int  # byte of the unpacked file with which the first record begins; 0 in Parquet
    line: int  # of the file with which the first record begins, from 1; in Parquet the number of its row


class Found(NamedTuple):
    """A record, or the error in its place."""

    line: int  # of the file, from 1; in Parquet the number of its row
    record: dict | None
    reason: str  # why there is no record; empty for a blank line, which is left out
    raw: str | dict  # as it is in the file, for reports; of Parquet the dict


class PlainText:
    """One text a line, exactly as it is without its line end; its key is the number of the line. An empty line is an
    empty text.

    Args:
        path: of the file, which may be packed by gzip.
        keys: names of the texts of a record, or several such tuples of names; a header must have all names of one.
    """

    def __init__(self, path: str, keys: Keys):
        self.path = path
        self.keys = keys
        with reading(path):
            self.file = unpacked(open_bytes(path), path)
            self.begin = self._read_begin()

    def _read_begin(self):
        """(offset, line) of the first record, after a check of the form."""
        head = split_lines(self.file.read(HEAD_BYTES).decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK))
        form = Form.PLAIN if first_non_blank(head) is None else form_of(head)
        if form not in (Form.PLAIN, Form.JSON_LINES):
            known = "many documents are plain text, JSON lines, CSV or Parquet, each by the end of its name"
            raise InputError(f"{self.path}: is {form.value}, and {known}; give it as the only --input, or name it so")
        return 0, 1

    def close(self) -> None:
        self.file.close()

    def parts(self, size: int) -> Iterator[tuple[int, int, int, int]]:
        """Yields (first, last, offset, line) of parts of ``size`` records, see :class:`Part`."""
        offset, line = self.begin
        self.file.seek(offset)
        first, last = (1, offset, line), 0
        for last, raw in enumerate(self._raw_records(), 1):
            offset, line = offset + len(raw), line + max(1, raw.count(b"\n"))
            if last % size == 0:
                yield first[0], last, *first[1:]
                first = (last + 1, offset, line)
        if last % size:
            yield first[0], last, *first[1:]

    def read(self, part: Part) -> Iterator[Found]:
        """Yields :class:`Found` for each record of a part."""
        self.file.seek(part.offset)
        line = part.line
        for raw in itertools.islice(self._raw_records(), part.last - part.first + 1):
            try:
                text = raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                yield Found(line, None, f"not UTF-8 (byte {error.start} of the record)", _visible(raw))
            else:
                yield self._found(text.removeprefix(BYTE_ORDER_MARK) if line == 1 else text, line)
            line += max(1, raw.count(b"\n"))

    def _raw_records(self):
        """Yields the bytes of each record from the position of the file."""
        return iter(self.file)

    def _found(self, text: str, line: int) -> Found:
        return Found(line, {"line": line, self.keys[0][0]: text}, "", text)


class JsonLines(PlainText):
    """A JSON object a line; blank lines are left out."""

    def _found(self, text, line):
        if not text.strip(BLANKS):
            return Found(line, None, "", text)
        try:
            return Found(line, parse_line(text, self.path), "", text)
        except InputError as error:
            return Found(line, None, str(error).removeprefix(f"{self.path}: "), text)


class Csv(PlainText):
    """Comma-separated values with a header, UTF-8, quoted by ``"``; blank lines are left out."""

    def _read_begin(self):
        csv.field_size_limit(MAX_FIELD_CHARACTERS)
        raw = next(self._raw_records(), b"")
        try:
            self.header = next(csv.reader([decode(raw, self.path)], strict=True), [])
        except csv.Error as error:
            remedy = "give a file with a header of names between commas"
            raise InputError(f"{self.path}:1: broken CSV ({error}); {remedy}") from None
        if raw:
            _check_columns(self.header, self.keys, f"{self.path}:1")
        return len(raw), 1 + max(1, raw.count(b"\n"))

    def _raw_records(self):
        taken = []

        def lines():
            for raw in self.file:
                taken.append(raw)
                yield raw.decode("utf-8", "surrogateescape")

        rows = csv.reader(lines(), strict=True)
        while True:
            try:
                next(rows)
            except StopIteration:
                return
            except csv.Error:  # which reading the record finds again
                pass
            yield b"".join(taken)
            taken.clear()

    def _found(self, text, line):
        try:
            fields = next(csv.reader([text], strict=True))
        except csv.Error as error:
            return Found(line, None, f"broken CSV ({error})", text)
        if fields and len(fields) != len(self.header):
            return Found(line, None, f"{len(fields)} columns, but the header has {len(self.header)}", text)
        return Found(line, dict(zip(self.header, fields)) if fields else None, "", text)


class Parquet:
    """Rows of a Parquet file, read a row group at a time; as :class:`PlainText`."""

    def __init__(self, path: str, keys: Keys):
        self.path = path
        self.file = open_bytes(path)
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError(f"{path}: Parquet needs pyarrow; pip install 'paddle_rope[ray]'") from None
        try:
            self._table = pyarrow.parquet.ParquetFile(self.file)
            _check_columns(self._table.schema_arrow.names, keys, path)
        except (pyarrow.ArrowException, OSError) as error:
            reason = reason_of(error)
            raise InputError(f"{path}: is no Parquet file, or damaged ({reason}); write it again") from None

    def close(self) -> None:
        self.file.close()

    def parts(self, size: int) -> Iterator[tuple[int, int, int, int]]:
        rows = self._table.metadata.num_rows
        for first in range(1, rows + 1, size):
            yield first, min(first + size - 1, rows), 0, first

    def read(self, part: Part) -> Iterator[Found]:
        sizes = (self._table.metadata.row_group(group).num_rows for group in range(self._table.num_row_groups))
        bounds = [0, *itertools.accumulate(sizes)]
        pairs = enumerate(itertools.pairwise(bounds))
        groups = [group for group, (begin, end) in pairs if begin < part.last and part.first <= end]
        number = bounds[groups[0]]  # rows before the batch
        for batch in self._table.iter_batches(PARQUET_ROWS, groups):
            first = max(0, part.first - 1 - number)
            rows = batch.slice(first, part.last - number - first)
            for row, record in enumerate(rows.to_pylist(), number + first + 1):
                yield Found(row, record, "", record)
            number += batch.num_rows
            if number >= part.last:
                return


def _check_columns(header, keys, where):
    check_names(header, where)
    if not any(set(names) <= set(header) for names in keys):
        wanted = " or ".join(" and ".join(map(repr, names)) for names in keys)
        remedy = "give its name as --text_column" if len(keys[0]) == 1 else "rename the columns"
        raise InputError(f"{where}: no column {wanted} ({', '.join(map(str, header)):.200}); {remedy}")


def _visible(raw):
    return raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")


def as_json(record: dict) -> str:
    """A line of JSON; values of Parquet that JSON does not have become strings, half a surrogate pair its escape."""
    return files.as_json(record, default=_as_text) + "\n"


def _as_text(value):
    return _visible(value) if isinstance(value, bytes) else str(value)


# The class by the end of a file's name; each but Parquet may be packed.
SOURCES = {".txt": PlainText, ".jsonl": JsonLines, ".json": JsonLines, ".csv": Csv, ".parquet": Parquet}
GZIP = ".gz"
ENDINGS = (*SOURCES, *(f"{ending}{GZIP}" for ending in SOURCES if ending != ".parquet"))
_OR_ENDINGS = f"{', '.join(SOURCES)} or, but for Parquet, such an end and {GZIP}"


def open_source(path: str, keys: Keys) -> PlainText | Parquet:
    """The source of a file, by the end of its name; raises InputError if it cannot be read or lacks the ``keys`` of the
    texts, see :class:`~tasks.scaling.formats.PlainText`."""
    ending = next(ending for ending in ENDINGS if path.endswith(ending)).removesuffix(GZIP)
    if SOURCES[ending] is PlainText and len(keys[0]) > 1:
        names = " and ".join(keys[0])
        raise InputError(f"{path}: plain text has one text a line; give JSON lines, CSV or Parquet with {names}")
    return SOURCES[ending](path, keys)


def find_files(inputs: list[str]) -> list[str]:
    """The absolute paths of files given as they are or by their folder, of which files whose names begin with a dot or
    an underscore, and folders, are left out. Raises InputError if there is none, one is given twice, or its name has an
    unknown end."""
    found = []
    for given in inputs:
        if not os.path.isdir(given):
            found.append(given)
            continue
        names = sorted(entry.name for entry in os.scandir(given) if entry.is_file() and entry.name[0] not in "._")
        if not names:
            raise InputError(f"{given}: no files in this folder; give a folder with files that end with {_OR_ENDINGS}")
        found += [os.path.join(given, name) for name in names]
    for path in found:
        open_bytes(path).close()
        if not path.endswith(ENDINGS):
            raise InputError(f"{path}: unknown kind of file; its name has to end with {_OR_ENDINGS}")
    for path, count in Counter(map(os.path.realpath, found)).items():
        if count > 1:
            raise InputError(f"{path}: is given twice; give it once")
    return list(map(os.path.abspath, found))


def parts_of(paths: list[str], keys: Keys, size: int) -> list[Part]:
    """The parts of files, of ``size`` records at most, in order; reads each file once. Raises InputError if a file
    cannot be read, or there is no record in any."""
    spans = []
    for path in paths:
        with reading(path), contextlib.closing(open_source(path, keys)) as source:
            spans += [(path, *span) for span in source.parts(size)]
    if not spans:
        raise InputError(f"{paths[0]}: no records in it{' and the others' if len(paths) > 1 else ''}; give texts")
    return [Part(number, *span) for number, span in enumerate(spans)]
