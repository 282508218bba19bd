"""Text files as a user may give them: UTF-8 with or without byte order mark, lines that end with LF or CRLF.

All other line separators of Unicode are characters like any other. What cannot be read raises ``InputError``.
"""

from __future__ import annotations

import io
import os
import sys
from typing import BinaryIO

from tasks.common.errors import InputError
from tasks.common.texts.packed import opened

STDIN = "-"
IN_MEMORY = "(in memory)"  # in the configuration of a run, in place of a file
BYTE_ORDER_MARK = "\ufeff"
BLANKS = " \t"


class RecordsName(str):
    """The name of a list of records in memory, whose lines of JSON are read as those of a file."""


def place(name: str, number: int) -> str:
    """Where line ``number``, from 1, is: "path:line", or for records in memory "name[index]", from 0."""
    return f"{name}[{number - 1}]" if isinstance(name, RecordsName) else f"{name}:{number}"


def read_text(path: str | os.PathLike) -> tuple[str, str]:
    """The content of a file, or of standard input if ``path`` is ``-``, and its name for messages."""
    name = os.fspath(path)
    if name == STDIN:
        return decode(opened(open_stdin("<stdin>"), "<stdin>").read(), "<stdin>"), "<stdin>"
    with open_bytes(name) as file:
        try:
            content = opened(file, name).read()
        except OSError as error:
            raise unreadable(name, error) from None
    return decode(content, name), name


def open_bytes(name: str) -> BinaryIO:
    """A file open for reading; raises InputError if there is none."""
    try:
        if os.path.isdir(name):
            raise InputError(f"{name}: is a directory; give the path of a file in it")
        return open(name, "rb")
    except FileNotFoundError:
        raise InputError(f"{name or repr(name)}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise unreadable(name, error) from None


def unreadable(name: str, error: Exception) -> InputError:
    """What is said of a file that is there and cannot be read."""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{name}: cannot be read ({reason}); check the path and its permissions")


def open_stdin(name: str) -> BinaryIO:
    """Standard input as bytes, also where a stream of text has taken its place."""
    if sys.stdin is None:
        raise InputError(f"{name}:1: standard input is closed; pipe text into it or give the path of a file")
    buffer = getattr(sys.stdin, "buffer", None)
    return io.BytesIO(sys.stdin.read().encode("utf-8")) if buffer is None else buffer


def decode(data: bytes, name: str, line: int = 1, position: int = 0) -> str:
    """UTF-8 to text, without the byte order mark.

    Args:
        data: bytes of an input, or of a part that begins with a line.
        name: of the input, for messages.
        line, position: line from 1, and byte from 0, with which ``data`` begins.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        encoding = "utf-16" if position == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff") else "gb18030"
        if encoding == "utf-16" or _is_gb18030(data, error.start):
            remedy = f"convert it, e.g. iconv -f {encoding} -t utf-8 OLD > NEW"
        else:
            remedy = "nor is it GB18030, so it may be a binary file; give a file of text"
        raise InputError(f"{name}:{line}: not UTF-8 (byte {position + error.start} of the input); {remedy}") from None
    return text.removeprefix(BYTE_ORDER_MARK) if position == 0 else text


def _is_gb18030(data, place):
    """Whether the line of byte ``place`` may be text in GB18030."""
    line = data[data.rfind(b"\n", 0, place) + 1 :].split(b"\n", 1)[0]
    try:
        return "\0" not in line.decode("gb18030")
    except UnicodeDecodeError:
        return False


def encodable(content: str) -> str:
    """Content that ``decode`` gives back: a first character that looks like a byte order mark gets one before it."""
    return BYTE_ORDER_MARK + content if content.startswith(BYTE_ORDER_MARK) else content


def split_lines(content: str) -> list[str]:
    """Lines without LF or CRLF. Not ``str.splitlines``, which also splits at characters such as U+2028."""
    return [line.removesuffix("\r") for line in content.split("\n")]


def first_non_blank(lines: list[str]) -> str | None:
    """The first line that holds more than spaces and tabs."""
    return next((line for line in lines if line.strip(BLANKS)), None)


def shown(value: object, limit: int = 60) -> str:
    """A value as one line of limited length for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists in lists in lists
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else text[:limit] + "..."
