"""Inputs that are no plain bytes of text: gzip is unpacked while it is read, other kinds are named.

The first bytes decide, whatever the name. What a packed input may become in memory is bounded by its own size.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from typing import BinaryIO

from tasks.common.errors import InputError

HEAD = 512  # bytes looked at
MOST_TIMES = 100  # as large as it is packed may an input become; texts become 3 to 10 times as large
ALWAYS_ALLOWED = 1 << 24  # bytes, also where little of the input has been read
_GZIP = b"\x1f\x8b"
_DOCBIN = (
    "zlib data, as spaCy's DocBin; write it as JSON lines with spaCy: for doc in DocBin().from_disk(FILE).get_docs("
    'spacy.blank("zh").vocab): print(json.dumps({"text": doc.text, "entities": [[e.start_char, e.end_char, e.label_] '
    "for e in doc.ents]}))"
)
_SAVE_TABLE = "save the table as CSV in UTF-8"
# where the bytes stand, the bytes, what they tell and the remedy
_SIGNATURES = (
    (0, b"PK\x03\x04", f"a zip archive or an Office document; unpack it, or {_SAVE_TABLE}"),
    (0, b"\xd0\xcf\x11\xe0", f"an old Office document; {_SAVE_TABLE}, or its text"),
    (0, b"BZh", "packed by bzip2; unpack it with bunzip2, or pack it with gzip"),
    (0, b"\xfd7zXZ\x00", "packed by xz; unpack it with unxz, or pack it with gzip"),
    (0, b"\x28\xb5\x2f\xfd", "packed by zstd; unpack it with unzstd, or pack it with gzip"),
    (0, b"7z\xbc\xaf", "a 7z archive; unpack it"),
    (0, b"Rar!", "a rar archive; unpack it"),
    (257, b"ustar", "a tar archive; unpack it, and give the files or their folder"),
    (0, b"PAR1", "Parquet, which predict reads with --output FOLDER; for labels write it as JSON lines"),
    (0, b"ARROW1", "Arrow; write it as JSON lines, with to_json of Hugging Face's datasets"),
    (0, b"%PDF-", "PDF; save its text"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image; give a file of text"),
    (0, b"\xff\xd8\xff", "a JPEG image; give a file of text"),
    (0, b"GIF8", "a GIF image; give a file of text"),
    (0, b"SQLite format 3\x00", "a database of SQLite; write the records as JSON lines"),
    *((0, bytes((0x78, second)), _DOCBIN) for second in (0x01, 0x5E, 0x9C, 0xDA)),
)


def opened(file: BinaryIO, name: str) -> BinaryIO:
    """An input whose bytes are those of text: ``file`` itself, or an :class:`Unpacked`.

    Raises:
        InputError: it is of a kind that is no text.
    """
    head = _head_of(file)
    if head.startswith(_GZIP):
        file = Unpacked(file, name)
        head = file.head
    what = kind_of(head)
    if what is not None:
        raise InputError(f"{name}: is {what}")
    return file


def kind_of(head: bytes) -> str | None:
    """What an input that begins with ``head`` is, and what to do, where it is a known kind and no text."""
    found = next((what for place, mark, what in _SIGNATURES if head.startswith(mark, place)), None)
    return None if found is None or _is_text(head) else found


def _is_text(head):
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def _head_of(file):
    """The bytes that come next, which stay to be read: at least one unless there are none."""
    if hasattr(file, "peek"):
        return file.peek(HEAD)[:HEAD]
    if not file.seekable():
        return b""
    place = file.tell()
    head = file.read(HEAD)
    file.seek(place)
    return head


class Unpacked(io.RawIOBase):
    """The content of gzip, unpacked as it is read.

    Attributes:
        head: the first bytes, which are still to be read.
    """

    def __init__(self, file: BinaryIO, name: str):
        self._file, self._name = file, name
        self._counted = _Counted(file)
        self._gzip = gzip.GzipFile(fileobj=self._counted, mode="rb")
        self._given = 0
        self.head = self._waiting = self._next(HEAD)

    def read1(self, size: int = -1) -> bytes:
        if self._waiting:
            block, self._waiting = self._waiting, b""
            return block
        return self._next(size if size > 0 else io.DEFAULT_BUFFER_SIZE)

    def read(self, size: int = -1) -> bytes:
        if size >= 0:
            return self.read1(size)
        blocks = []
        while block := self.read1(1 << 20):
            blocks.append(block)
        return b"".join(blocks)

    def close(self) -> None:
        self._file.close()

    def _next(self, size):
        try:
            block = self._gzip.read1(size)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self._name}: is packed by gzip and damaged ({error}); pack it again") from None
        self._given += len(block)
        if self._given > max(ALWAYS_ALLOWED, MOST_TIMES * self._counted.taken):
            raise InputError(
                f"{self._name}: unpacks to more than {MOST_TIMES} times its size; if you trust it, unpack it yourself"
            )
        return block


class _Counted:
    """A file that counts the bytes taken from it."""

    def __init__(self, file):
        self._file = file
        self.taken = 0

    def read(self, size=-1):
        block = self._file.read1(size) if hasattr(self._file, "read1") else self._file.read(size)
        self.taken += len(block)
        return block
