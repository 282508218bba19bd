"""gzip is read as what it holds, within bounds; other kinds of files are named."""

import gzip
import io
import tarfile
import zipfile
import zlib
from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.common.texts import text_files
from tasks.common.texts.streams import TextStream
from tasks.common.texts.text_files import read_text

TEXT = "\ufeff" + "".join(f"第{number}行，今天\n" for number in range(20_000))


@pytest.fixture
def write(tmp_path):
    def write(content, name="data"):
        path = tmp_path / name
        path.write_bytes(content)
        return str(path)

    return write


def texts(source):
    return [text for chunk in TextStream(source) for text, _ in chunk]


def test_gzip_is_read_whole_and_as_a_stream_whatever_its_name(write, monkeypatch):
    path = write(gzip.compress(TEXT.encode()))
    assert read_text(path) == (TEXT[1:], path)
    assert texts(path) == TEXT[1:].split("\n")[:-1]
    stream = TextStream(path)
    assert len(list(stream)) > 1 and stream.size is None  # how much is left is not known
    for kind in (io.BufferedReader, lambda raw: raw):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=kind(io.BytesIO(gzip.compress(TEXT.encode())))))
        assert texts("-") == TEXT[1:].split("\n")[:-1]


def test_members_of_gzip_follow_each_other(write):
    assert texts(write(gzip.compress("甲\n".encode()) + gzip.compress("乙".encode()))) == ["甲", "乙"]


@pytest.mark.parametrize("read", [read_text, texts])
def test_damaged_gzip_is_an_error_that_says_so(write, read):
    whole = gzip.compress(TEXT.encode())
    for content in (
        whole[:-4],
        whole[:5000],
        whole[:-8] + bytes(8),
        whole[:100] + bytes(50) + whole[150:],
        whole + b"x",
    ):
        with pytest.raises(InputError, match="is packed by gzip and damaged"):
            read(write(content))


@pytest.mark.parametrize("read", [read_text, texts])
def test_what_unpacks_to_far_more_is_refused_before_it_fills_the_memory(write, read, monkeypatch):
    monkeypatch.setattr(text_files, "MIN_GZIP_BYTES", 1 << 16)
    path = write(gzip.compress(b"a" * (1 << 22)))
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        read(path)
    assert text_files.MIN_GZIP_BYTES + 100 * 5000 < 1 << 22


def _zip():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("a.txt", "甲")
    return stream.getvalue()


def _tar():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        file.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return stream.getvalue()


@pytest.mark.parametrize(
    "content, what",
    [
        (_zip(), "a zip archive or an Office document; unpack it"),
        (_tar(), "a tar archive"),
        (gzip.compress(_tar()), "a tar archive"),
        (zlib.compress(TEXT.encode()), "as spaCy's DocBin; write it as JSON lines with spaCy"),
        (b"PAR1\x15\x00\x15\xff", "Parquet"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "PDF; save its text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "an image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "an image"),
        (b"GIF89a\x0a\0\x0a\0\xf7\0\0", "an image"),
    ],
    ids=["zip", "tar", "tar.gz", "docbin", "parquet", "pdf", "png", "jpeg", "gif"],
)
@pytest.mark.parametrize("read", [read_text, texts])
def test_other_kinds_are_named(write, read, content, what):
    path = write(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: is {what}") or what in str(caught.value)


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x01\0\0\xff", b"\xff\xfb\x90\x64\xff\n"])
@pytest.mark.parametrize("read", [read_text, texts])
def test_other_bytes_are_called_binary_and_no_encoding_is_advised(write, read, content):
    path = write(content)
    with pytest.raises(InputError, match="binary") as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:1: ") and "iconv" not in str(caught.value)


@pytest.mark.parametrize("text", ["PAR1 是什么", "%PDF-1.4", "BZh91", "x^2", "Rar!"])
def test_text_that_begins_so_is_text(write, text):
    assert texts(write(text.encode())) == [text]
