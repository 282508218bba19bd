"""Text files as a user may give them: UTF-8 with or without byte order mark, lines that end with LF or CRLF.

All other line separators of Unicode are characters like any other. What cannot be read raises ``InputError``.
"""

from __future__ import annotations

import os
import sys

from tasks.common.errors import InputError

STDIN = "-"
BYTE_ORDER_MARK = "\ufeff"
BLANKS = " \t"


def read_text(path: str | os.PathLike) -> tuple[str, str]:
    """The content of a file, or of standard input if ``path`` is ``-``, and its name for messages."""
    name = os.fspath(path)
    if name == STDIN:
        return _read_stdin("<stdin>"), "<stdin>"
    return decode(_read_bytes(name), name), name


def _read_bytes(name: str) -> bytes:
    try:
        if os.path.isdir(name):
            raise InputError(f"{name}: is a directory; give the path of a file in it")
        with open(name, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise InputError(f"{name or repr(name)}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: cannot be read ({reason}); check the path and its permissions") from None


def _read_stdin(name: str) -> str:
    if sys.stdin is None:
        raise InputError(f"{name}:1: standard input is closed; pipe text into it or give the path of a file")
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:  # replaced by a stream of text
        return sys.stdin.read()
    return decode(buffer.read(), name)


def decode(data: bytes, name: str) -> str:
    """UTF-8 to text, without the byte order mark."""
    try:
        return data.decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "gb18030"
        raise InputError(
            f"{name}:{line}: not UTF-8 (byte {error.start} of the input); convert it, "
            f"e.g. iconv -f {encoding} -t utf-8 OLD > NEW"
        ) from None


def encodable(content: str) -> str:
    """Content that ``decode`` gives back: a first character that looks like a byte order mark gets one before it."""
    return BYTE_ORDER_MARK + content if content.startswith(BYTE_ORDER_MARK) else content


def split_lines(content: str) -> list[str]:
    """Lines without LF or CRLF. Not ``str.splitlines``, which also splits at characters such as U+2028."""
    lines = content.split("\n")
    if "\r" in content:
        lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    return lines


def first_non_blank(lines: list[str]) -> str | None:
    """The first line that holds more than spaces and tabs."""
    return next((line for line in lines if line.strip(BLANKS)), None)


def shown(value: object, limit: int = 60) -> str:
    """A value as one line of limited length for a message."""
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."
