"""The kinds of files, each read a part at a time: plain text, JSON lines, CSV and Parquet.

A record is a line of plain text or of JSON lines, or a row of CSV or Parquet. What is wrong with one record is said of
that record and stops nothing. Only a file that cannot be read at all raises ``InputError``.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from typing import NamedTuple

from tasks.common import files
from tasks.common.errors import InputError
from tasks.common.texts.forms import Form, form_of
from tasks.common.texts.json_records import parse_line
from tasks.common.texts.tables import MAX_FIELD_CHARACTERS
from tasks.common.texts.text_files import BLANKS, BYTE_ORDER_MARK, decode, open_bytes, shown, split_lines

GZIP = ".gz"
PARQUET_ROWS = 1024  # read at once
HEAD_BYTES = 1 << 14  # in which the form of a file is seen
_MARK = BYTE_ORDER_MARK.encode()


Keys = tuple[tuple[str, ...], ...]


class Part(NamedTuple):
    """Successive records of one file, which become one file of results.

    Attributes:
        number: of the part, from 0.
        path: the file.
        first, last: its records, from 1, both inclusive; the header of CSV is none.
        offset: byte of the unpacked file with which the first record begins; 0 in Parquet.
        line: line of the file with which the first record begins, from 1; in Parquet the number of its row.
    """

    number: int
    path: str
    first: int
    last: int
    offset: int
    line: int


class Found(NamedTuple):
    """What stands in the place of a record.

    Attributes:
        line: of the file, from 1; in Parquet the number of its row.
        record: dict of its keys and values; None if there is none.
        reason: why there is none; empty for a blank line, which is left out.
        raw: the record as it stands in the file, for reports; of Parquet the dict.
    """

    line: int
    record: dict | None
    reason: str
    raw: str | dict


class Source:
    """A file. A subclass says how its records are parted and read.

    Args:
        path: of the file.
        keys: names of the texts of a record, or several such tuples of names; a header must have those of one.
    """

    def __init__(self, path: str, keys: Keys):
        self.path = path
        self.keys = keys
        self.file = gzip.GzipFile(fileobj=open_bytes(path)) if path.endswith(GZIP) else open_bytes(path)

    def close(self) -> None:
        self.file.close()

    def parts(self, size: int) -> Iterator[tuple[int, int, int, int]]:
        """Yields (first, last, offset, line) of parts of ``size`` records, see :class:`Part`."""
        records, start = 0, None
        for offset, line in self._places():
            if records % size == 0:
                if start:
                    yield (records - size + 1, records, *start)
                start = (offset, line)
            records += 1
        if start:
            yield (records - (records - 1) % size, records, *start)

    def read(self, part: Part) -> Iterator[Found]:
        """Yields :class:`Found` for each record of a part."""
        raise NotImplementedError

    def _places(self):
        """Yields (offset, line) of each record."""
        raise NotImplementedError


class PlainText(Source):
    """One text a line, exactly as it stands without its line end; its key is the number of the line. An empty line is
    an empty text."""

    def __init__(self, path, keys):
        super().__init__(path, keys)
        head = split_lines(self.file.read(HEAD_BYTES).decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK))
        self.file.seek(0)
        form = form_of(head) if any(line.strip(BLANKS) for line in head) else Form.PLAIN
        if form not in (Form.PLAIN, Form.JSON_LINES):
            raise InputError(
                f"{path}: is {form.value}, and many documents are plain text, JSON lines, CSV or Parquet, each by the "
                "end of its name; give it as the only --input, or name it so"
            )

    def _places(self):
        offset = 0
        for number, raw in enumerate(self.file, 1):
            yield offset, number
            offset += len(raw)

    def read(self, part):
        self.file.seek(part.offset)
        for number in range(part.line, part.line + part.last - part.first + 1):
            raw = self.file.readline()
            if not raw:
                return
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            yield self._found(line.removeprefix(_MARK) if number == 1 else line, number)

    def _found(self, raw, number):
        try:
            return self.of_line(raw.decode("utf-8"), number)
        except UnicodeDecodeError as error:
            return Found(number, None, f"not UTF-8 (byte {error.start} of the line)", _visible(raw))

    def of_line(self, line: str, number: int) -> Found:
        return Found(number, {"line": number, self.keys[0][0]: line}, "", line)


class JsonLines(PlainText):
    """A JSON object a line; blank lines are left out."""

    def of_line(self, line, number):
        if not line.strip(BLANKS):
            return Found(number, None, "", line)
        try:
            return Found(number, parse_line(line, self.path), "", line)
        except InputError as error:
            return Found(number, None, _without_place(error, self.path), line)


class Csv(Source):
    """Comma-separated values with a header, UTF-8, quoted by ``"``; blank lines are left out."""

    def __init__(self, path, keys):
        super().__init__(path, keys)
        csv.field_size_limit(MAX_FIELD_CHARACTERS)
        raw, fields, reason = next(self._rows(), (b"", [], ""))
        decode(raw, path)  # raises InputError if it is not UTF-8
        if reason:
            raise InputError(f"{path}:1: {reason}; give a file with a header of names between commas")
        self.header = [name.removeprefix(BYTE_ORDER_MARK) if not place else name for place, name in enumerate(fields)]
        self._begin = (len(raw), 1 + max(1, raw.count(b"\n")))
        if raw:
            _check_columns(self.header, keys, f"{path}:1")

    def _rows(self):
        """Yields (bytes, fields, what is wrong) of each row from where the file stands."""
        taken = []

        def lines():
            for raw in self.file:
                taken.append(raw)
                yield raw.decode("utf-8", "surrogateescape")

        rows = csv.reader(lines(), strict=True)
        while True:
            try:
                fields, reason = next(rows), ""
            except StopIteration:
                return
            except csv.Error as error:
                fields, reason = [], f"broken CSV ({error})"
            yield b"".join(taken), fields, reason
            taken.clear()

    def _places(self):
        offset, line = self._begin
        self.file.seek(offset)
        for raw, _, _ in self._rows():
            yield offset, line
            offset += len(raw)
            line += max(1, raw.count(b"\n"))

    def read(self, part):
        self.file.seek(part.offset)
        line = part.line
        for (raw, fields, reason), _ in zip(self._rows(), range(part.first, part.last + 1)):
            yield self._found(raw, fields, reason, line)
            line += max(1, raw.count(b"\n"))

    def _found(self, raw, fields, reason, line):
        try:
            row = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            return Found(line, None, f"not UTF-8 (byte {error.start} of the row)", _visible(raw))
        if not fields and not reason:
            return Found(line, None, "", row)
        if not reason and len(fields) != len(self.header):
            reason = f"{len(fields)} columns, but the header has {len(self.header)}"
        return Found(line, None if reason else dict(zip(self.header, fields)), reason, row)


class Parquet(Source):
    """Rows of a Parquet file, read a row group at a time."""

    def __init__(self, path, keys):
        super().__init__(path, keys)
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise InputError(f"{path}: Parquet needs pyarrow; pip install -r requirements-ray.txt") from None
        try:
            self._table = pyarrow.parquet.ParquetFile(self.file)
            _check_columns(self._table.schema_arrow.names, keys, path)
        except (pyarrow.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{path}: is no Parquet file, or damaged ({reason:.200}); write it again") from None

    def _places(self):
        for number in range(1, self._table.metadata.num_rows + 1):
            yield 0, number

    def read(self, part):
        groups, before = [], 0  # those with rows of the part; rows before the first of them
        end = 0
        for group in range(self._table.num_row_groups):
            begin, end = end, end + self._table.metadata.row_group(group).num_rows
            if end < part.first:
                before = end
            elif begin < part.last:
                groups.append(group)
        number = before
        for batch in self._table.iter_batches(PARQUET_ROWS, groups):
            first = max(0, part.first - 1 - number)
            wanted = batch.slice(first, part.last - number - first)
            for row, record in enumerate(wanted.to_pylist(), number + first + 1):
                yield Found(row, record, "", record)
            number += batch.num_rows
            if number >= part.last:
                return


def _check_columns(header, keys, where):
    twice = [name for place, name in enumerate(header) if name in header[:place]]
    if twice:
        raise InputError(f"{where}: column {shown(twice[0])} is there twice; give each column its own name")
    if not any(set(names) <= set(header) for names in keys):
        wanted = " or ".join(" and ".join(map(repr, names)) for names in keys)
        remedy = "give its name as --text_column" if len(keys[0]) == 1 else "rename the columns"
        raise InputError(f"{where}: no column {wanted} ({', '.join(map(str, header)):.200}); {remedy}")


def _without_place(error, place):
    return str(error).removeprefix(f"{place}: ")


def _visible(raw):
    return raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")


def as_json(record: dict) -> str:
    """A line of JSON; values of Parquet that JSON does not have become strings, half a surrogate pair its escape."""
    return files.as_json(record, default=_as_text) + "\n"


def _as_text(value):
    return _visible(value) if isinstance(value, bytes) else str(value)
