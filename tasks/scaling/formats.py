"""Files of records, each cut into parts and read a part at a time: plain text, JSON lines, tables and Parquet.

A record is a line of plain text or of JSON lines, or a row. An error in one record is returned in its place and stops
nothing. Only a file that cannot be read at all raises ``InputError``.
"""

import itertools
import math
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from paddle_rope.tasks.common.errors import InputError, as_input_error, reason_of
from paddle_rope.tasks.common.texts.forms import Form, form_of_file
from paddle_rope.tasks.common.texts.json_records import parse_line
from paddle_rope.tasks.common.texts.tables import any_header, check_names, split_rows, values_of
from paddle_rope.tasks.common.texts.text_files import (
    BLANKS,
    BYTE_ORDER_MARK,
    check_unpacked,
    decode,
    open_bytes,
    reading,
    split_lines,
    unpacked,
)

PARQUET_ROWS = 1024  # read at once
HEAD_BYTES = 1 << 14  # read to recognize the form of a file
MAX_RECORD_BYTES = 1 << 24

Keys = tuple[tuple[str, ...], ...]


class Part(NamedTuple):
    """Successive records of one file, which become one file of results."""

    number: int  # from 0
    path: str
    first: int  # record, from 1; a header does not count
    last: int  # inclusive
    offset: int  # byte of the unpacked file where the first record begins; 0 in Parquet
    line: int  # of the file where the first record begins, from 1; in Parquet its row number


class Found(NamedTuple):
    """A record, or the error in its place."""

    line: int  # of the file, from 1; in Parquet the number of its row
    record: dict | None
    reason: str  # why there is no record; empty for a blank line, which is left out
    raw: str | dict  # as in the file, for reports; a dict in Parquet


class TextSource:
    """Plain text, JSON lines or a table, as :func:`paddle_rope.tasks.common.texts.forms.form_of_file` decides. A line
    of plain text, even an empty one, is a text exactly as it is, and its key is the line number; other blank lines are
    left out. ``keys`` are alternative tuples of the names of a record's texts; a header must have all names of one
    tuple."""

    def __init__(self, path: str, keys: Keys):
        self.path, self.keys, self.begin = path, keys, (0, 1)  # offset and line of the first record
        with reading(path):
            self.file = unpacked(open_bytes(path), path)
            head = self.file.read(HEAD_BYTES).decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)
            self.form = form_of_file(split_lines(head), path)
            self.file.seek(0)
            raw = self.file.readline() if self.form is Form.TABLE else b""
            self.header = any_header(decode(raw, path).rstrip("\r\n"))
            if raw:
                _check_columns(self.header.names, keys, f"{path}:1")
                self.begin = len(raw), 2
        known = (Form.JSON_LINES, Form.TABLE) if len(keys[0]) > 1 else (Form.PLAIN, Form.JSON_LINES, Form.TABLE)
        if self.form not in known:
            wanted = f"{', '.join(form.value for form in known)} or Parquet with {' and '.join(keys[0])}"
            raise InputError(f"{path}: is {self.form.value}; give {wanted}, or this file alone")

    def parts(self, size: int) -> Iterator[tuple[int, int, int, int]]:
        """Yields (first, last, offset, line) of parts of ``size`` records, see :class:`Part`."""
        offset, line = self.begin
        self.file.seek(offset)
        first, last = (1, offset, line), 0
        for last, raw in enumerate(self._raw_records(), 1):
            if len(raw) > MAX_RECORD_BYTES:
                remedy = "give one text a line, or this file alone"
                raise InputError(f"{self.path}:{line}: a record of more than {MAX_RECORD_BYTES:,} bytes; {remedy}")
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
            where = f"{self.path}:{line}"
            try:
                text = raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
                text = text.removeprefix(BYTE_ORDER_MARK) if line == 1 else text
                yield Found(line, self._record(text, line, where), "", text)
            except UnicodeDecodeError as error:
                yield Found(line, None, f"not UTF-8 (byte {error.start} of the record)", _visible(raw))
            except InputError as error:
                yield Found(line, None, str(error).removeprefix(f"{where}: "), text)
            line += max(1, raw.count(b"\n"))

    def _raw_records(self):
        """The bytes of each record from the position of the file."""
        lines = iter(lambda: self.file.readline(MAX_RECORD_BYTES + 1), b"")
        if self.form is not Form.TABLE:
            return lines
        rows = split_rows((raw.decode("utf-8", "surrogateescape") for raw in lines), self.header)
        return (row.encode("utf-8", "surrogateescape") for row in rows)

    def _record(self, text, line, where):
        """The record of a text; None for a blank line, except in plain text."""
        if self.form is Form.PLAIN:
            return {"line": line, self.keys[0][0]: text}
        if self.form is Form.JSON_LINES:
            return parse_line(text, where) if text.strip(BLANKS) else None
        values = values_of(text, self.header, where)
        return dict(zip(self.header.names, values)) if values else None


class Parquet:
    """The rows of a Parquet file, read one row group at a time; used like :class:`TextSource`."""

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

    def parts(self, size: int) -> Iterator[tuple[int, int, int, int]]:
        rows, total = self._table.metadata.num_rows, 0
        with as_input_error(f"{self.path}: is damaged, write it again: ", (ValueError, OSError)):  # of pyarrow
            for batch in self._table.iter_batches(PARQUET_ROWS):
                total += batch.nbytes
                check_unpacked(total, self.file, self.path)
        for first in range(1, rows + 1, size):
            yield first, min(first + size - 1, rows), 0, first

    def read(self, part: Part) -> Iterator[Found]:
        sizes = (self._table.metadata.row_group(group).num_rows for group in range(self._table.num_row_groups))
        bounds = [0, *itertools.accumulate(sizes)]
        pairs = enumerate(itertools.pairwise(bounds))
        groups = [group for group, (begin, end) in pairs if begin < part.last and part.first <= end]
        number = bounds[groups[0]]  # rows before the batch
        with as_input_error(f"{self.path}: is damaged, write it again: ", (ValueError, OSError)):  # of pyarrow
            for batch in self._table.iter_batches(PARQUET_ROWS, groups):
                for row in range(max(number, part.first - 1), min(number + batch.num_rows, part.last)):
                    try:
                        (record,) = map(_finite, batch.slice(row - number, 1).to_pylist())
                        yield Found(row + 1, record, "", record)
                    except UnicodeDecodeError as error:
                        yield Found(row + 1, None, f"not UTF-8 ({error.reason})", "")
                number += batch.num_rows
                if number >= part.last:
                    return


def _check_columns(header, keys, where):
    check_names(header, where)
    if not any(set(names) <= set(header) for names in keys):
        wanted = " or ".join(" and ".join(map(repr, names)) for names in keys)
        remedy = "give its name as --text_column" if len(keys[0]) == 1 else "rename the columns"
        raise InputError(f"{where}: no column {wanted} ({', '.join(map(str, header)):.200}); {remedy}")


def _finite(value):
    """A value of Parquet without the numbers that JSON does not have: NaN, which pandas writes for what is missing, is
    null, and an infinite number a string."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return list(map(_finite, value)) if isinstance(value, (list, tuple)) else value


def _visible(raw):
    return raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")


def as_text(value: Any) -> str:
    """A Parquet value without a JSON counterpart, as a string."""
    return _visible(value) if isinstance(value, bytes) else str(value)


ENDINGS = (".txt", ".jsonl", ".json", ".csv", ".tsv", ".parquet")
_OR_ENDINGS = f"{', '.join(ENDINGS)} or, but for Parquet, such an end and .gz"


def open_source(path: str, keys: Keys) -> TextSource | Parquet:
    """The source of a file; raises InputError if it cannot be read or lacks the ``keys`` of the texts, see
    :class:`TextSource`."""
    return (Parquet if path.endswith(".parquet") else TextSource)(path, keys)


def find_files(inputs: list[str]) -> list[str]:
    """The absolute paths of the given files and of the files in the given folders, without subfolders and names that
    begin with a dot or an underscore. Raises InputError if a folder has no files, a file is given twice, or its name
    has an unknown ending."""
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
        if not path.removesuffix(".gz").endswith(ENDINGS):
            raise InputError(f"{path}: unknown kind of file; its name has to end with {_OR_ENDINGS}")
    for path, count in Counter(map(os.path.realpath, found)).items():
        if count > 1:
            raise InputError(f"{path}: is given twice; give it once")
    return list(map(os.path.abspath, found))


def parts_of(paths: list[str], keys: Keys, size: int) -> list[Part]:
    """The parts of files in order, each of at most ``size`` records; reads each file once. Raises InputError if a file
    cannot be read, or no file has a record."""
    spans = []
    for path in paths:
        with reading(path):
            source = open_source(path, keys)
            with source.file:
                spans += [(path, *span) for span in source.parts(size)]
    if not spans:
        raise InputError(f"{paths[0]}: no records in it{' and the others' if len(paths) > 1 else ''}; give texts")
    return [Part(number, *span) for number, span in enumerate(spans)]
