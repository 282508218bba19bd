"""Text files as users give them: UTF-8 with or without a byte order mark, gzip, lines that end with LF or CRLF.

All other line separators of Unicode are ordinary characters. A file that cannot be read raises ``InputError``.
"""

import codecs
import contextlib
import gzip
import io
import math
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from paddle_rope.tasks.common.errors import InputError, as_input_error

STDIN = "-"
IN_MEMORY = "(in memory)"  # in the configuration of a run, in place of a file
ADDITIONS = "additions"  # the same: generated sums for the recipe language_model
BYTE_ORDER_MARK = "\ufeff"
BLANKS = " \t"
READ_BYTES = 1 << 20  # read at once

_HEAD_BYTES = 512  # in which binary data are recognized
GZIP = b"\x1f\x8b"
# a file may unpack to this many times its size (texts: 3 to 10 times), or to this many bytes
MAX_UNPACKED_RATIO = 100
MIN_UNPACKED_BYTES = 1 << 24
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAVE = (
    "unpack an archive, save a table as CSV in UTF-8, or give the text of a document (predict reads Parquet with "
    "--output FOLDER)"
)


class RecordsName(str):
    """The name of a list of records in memory, which are read as the lines of a JSON lines file."""


def place(name: str, number: int) -> str:
    """Position of line ``number``, from 1: "path:line", or for records in memory "name[index]", from 0."""
    return f"{name}[{number - 1}]" if isinstance(name, RecordsName) else f"{name}:{number}"


# ---- bytes


def read_text(path: str | os.PathLike) -> tuple[str, str]:
    """Content of a file, or of standard input if ``path`` is ``-``, and its name for messages."""
    file, name = open_input(path)
    with contextlib.nullcontext() if os.fspath(path) == STDIN else file:
        return decode(b"".join(blocks(file, name)), name), name


def open_input(path: str | os.PathLike) -> tuple[BinaryIO, str]:
    """A file, or standard input if ``path`` is ``-``, open for reading, and its name for messages."""
    name = os.fspath(path)
    if name != STDIN:
        return open_bytes(name), name
    if sys.stdin is None:
        raise InputError("<stdin>:1: standard input is closed; pipe text into it or give the path of a file")
    buffer = getattr(sys.stdin, "buffer", None)  # None where a stream of text has replaced standard input
    return io.BytesIO(sys.stdin.read().encode("utf-8")) if buffer is None else buffer, "<stdin>"


def open_bytes(name: str) -> BinaryIO:
    """A file open for reading; raises InputError if there is none."""
    # ValueError: names that no file can have
    with reading(name), as_input_error(f"{name}: cannot be read; check the path: "):
        return open(name, "rb")


def blocks(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Bytes of an input as they arrive, unpacked if gzip; raises InputError if they cannot be read or are not text."""
    with reading(name):
        file = unpacked(file, name)
        yield from iter(lambda: file.read1(READ_BYTES), b"")


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Within this block, errors of opening or reading the file ``name`` become an InputError."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{name or repr(name)}: no such file; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{name}: is a directory; give the path of a file in it") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{name}: is packed by gzip and damaged ({error}); pack it again") from None
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{name}: cannot be read ({reason}); check the path and its permissions") from None


def unpacked(file: BinaryIO, name: str) -> BinaryIO:
    """The file itself, or its content if it is packed by gzip, whatever its name; raises InputError if the first bytes
    are not text or, while it is read, if it unpacks to far more than its size."""
    file = file if hasattr(file, "peek") else io.BufferedReader(file)
    if file.peek(_HEAD_BYTES).startswith(GZIP):
        file = io.BufferedReader(_Unpacked(file, name))
    head = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    if (b"\0\0" in head and not head.startswith(_UTF_16)) or head.startswith(b"%PDF-"):
        raise InputError(f"{name}: is no text but binary data; {_SAVE}")
    return file


class _Unpacked(gzip.GzipFile):
    """The content of a file that is packed by gzip, up to a bound, so that no small file fills the memory."""

    def __init__(self, file, source):
        super().__init__(fileobj=file)
        self._source = source

    def readinto(self, buffer):
        count = super().readinto(buffer)
        check_unpacked(self.tell(), self.fileobj, self._source)
        return count


def check_unpacked(size: int, file: BinaryIO, name: str) -> None:
    """Raise InputError if so many bytes are far more than the packed ``file`` has."""
    if size > max(MIN_UNPACKED_BYTES, MAX_UNPACKED_RATIO * (file_size(file) or math.inf)):
        remedy = "if you trust it, unpack it or write its records as JSON lines"
        raise InputError(f"{name}: unpacks to more than {MAX_UNPACKED_RATIO} times its size; {remedy}")


def file_size(file: BinaryIO) -> int | None:
    """Size of an open file in bytes, without unpacking it; None for a pipe."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


# ---- text


def decode(data: bytes, name: str, line: int = 1, position: int = 0) -> str:
    """UTF-8 ``data`` as text, without the byte order mark; it begins at ``line`` (from 1) and byte ``position`` (from
    0) of the input called ``name``."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        encoding = "utf-16" if position == 0 and data.startswith(_UTF_16) else "gb18030"
        remedy = f"convert it, e.g. iconv -f {encoding} -t utf-8 OLD > NEW; if it is no text, {_SAVE}"
        raise InputError(f"{name}:{line}: not UTF-8 (byte {position + error.start} of the input); {remedy}") from None
    return text.removeprefix(BYTE_ORDER_MARK) if position == 0 else text


def encodable(content: str) -> str:
    """``content`` to be written so that ``decode`` restores it: an initial byte order mark is doubled."""
    return BYTE_ORDER_MARK + content if content.startswith(BYTE_ORDER_MARK) else content


def split_lines(content: str) -> list[str]:
    """Lines without LF or CRLF. Not ``str.splitlines``, which also splits at characters such as U+2028."""
    return [line.removesuffix("\r") for line in content.split("\n")]


def first_non_blank(lines: list[str]) -> str | None:
    """The first line that has more than spaces and tabs."""
    return next((line for line in lines if line.strip(BLANKS)), None)


def shown(value: object, limit: int = 60) -> str:
    """A value as one line of limited length, for messages."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, deeply nested lists
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else text[:limit] + "..."
