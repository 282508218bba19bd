"""gzip is read as what it holds, within bounds; other kinds of files are named."""

import gzip
import io
import tarfile
import zlib
from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.common.texts import text_files
from tasks.common.texts.streams import TextStream
from tasks.common.texts.text_files import read_text

TEXT = "\ufeff" + "".join(f"第{number}行，今天\n" for number in range(20_000))
PACKED = gzip.compress(TEXT.encode())


def texts(source):
    return [text for chunk in TextStream(source) for text, _ in chunk]


def test_gzip_is_read_whole_and_as_a_stream_whatever_its_name(write, monkeypatch):
    path = str(write(PACKED))
    assert read_text(path) == (TEXT[1:], path)
    assert texts(path) == TEXT[1:].split("\n")[:-1]
    stream = TextStream(path)
    assert len(list(stream)) > 1 and stream.size is None  # how much is left is not known
    for kind in (io.BufferedReader, lambda raw: raw):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=kind(io.BytesIO(PACKED))))
        assert texts("-") == TEXT[1:].split("\n")[:-1]
    assert texts(write(gzip.compress("甲\n".encode()) + gzip.compress("乙".encode()))) == ["甲", "乙"]


TAR = tarfile.TarInfo("a.txt").tobuf()
DAMAGED = "is packed by gzip and damaged"
REFUSED = {  # name -> (content, message)
    "end cut": (PACKED[:-4], DAMAGED),
    "cut": (PACKED[:5000], DAMAGED),
    "checksum": (PACKED[:-8] + bytes(8), DAMAGED),
    "middle": (PACKED[:100] + bytes(50) + PACKED[150:], DAMAGED),
    "more": (PACKED + b"x", DAMAGED),
    "bomb": (gzip.compress(b"a" * (1 << 22)), "unpacks to more than 100 times its size"),
    "zip": (b"PK\x03\x04\x14\0\xff", "is an archive or an Office document; unpack it"),
    "tar": (TAR, "is a tar archive"),
    "tar.gz": (gzip.compress(TAR, mtime=0), "is a tar archive"),
    "docbin": (zlib.compress(TEXT.encode()), "is binary data"),
    "parquet": (b"PAR1\x15\x00\x15\xff", "is Parquet"),
    "pdf": (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "is PDF or an image; give its text"),
    "gif": (b"GIF89a\x0a\0\x0a\0\xf7\0\0", "is PDF or an image"),
    "elf": (b"\x7fELF\x02\x01\x01\0\0\xff", "1: not UTF-8 .* binary"),
    "mp3": (b"\xff\xfb\x90\x64\xff\n", "1: not UTF-8 .* binary"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("read", [read_text, texts])
def test_what_is_no_text_is_named(write, read, name, monkeypatch):
    monkeypatch.setattr(text_files, "MIN_GZIP_BYTES", 1 << 16)
    content, message = REFUSED[name]
    path = str(write(content, "data"))
    with pytest.raises(InputError, match=f"^{path}:.* ?{message}") as caught:
        read(path)
    assert "iconv" not in str(caught.value)


@pytest.mark.parametrize("text", ["PAR1 是什么", "%PDF-1.4", "BZh91", "x^2", "Rar!"])
def test_text_that_begins_so_is_text(write, text):
    assert texts(write(text)) == [text]
