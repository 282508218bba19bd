"""Texts are read as they come, unpacked within bounds; other kinds of files are named."""

import gzip
import io
import tarfile
import zlib
from types import SimpleNamespace

import pytest

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts import text_files
from paddle_rope.tasks.common.texts.streams import TextStream
from paddle_rope.tasks.common.texts.text_files import read_text
from tests.helpers.pipe import Pipe


@pytest.fixture
def stream(monkeypatch):
    """A stream of standard input that gets these pieces."""

    def stream(*pieces, **options):
        pieces = [piece if isinstance(piece, bytes) else piece.encode("utf-8") for piece in pieces]
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Pipe(*pieces)))
        return TextStream("-", **options)

    return stream


def texts(chunk):
    return [text for text, _ in chunk]


@pytest.mark.parametrize("pieces, chunks", [
    (["\n", " \n", "甲\n", "\n"], [["", " ", "甲"], [""]]),  # blank lines wait for the line that decides
    (["\n", " \n", '{"text": "甲"}\n', "\n", '{"text": ""}'], [["甲"], [""]]),
    (["\n", "\t\n"], [["", "\t"]]),
    (["[\n\n", ' {"text": "甲"}]\n'], [["甲"]]),  # so do brackets, which may begin a list
    (["[\n", "[{\n"], [["[", "[{"]]),
    (["a\nb\nc\nd\ne\n", "f\n"], [["a", "b"], ["c", "d"], ["e"], ["f"]]),  # of a read, up to a bound
    (['{"text": "叶老桂", "label": {"name": {"叶老桂": [[0, 2]]}}, "id": 7}\n'], [["叶老桂"]]),
    (["\ufeff甲\n", "\ufeff乙\n"], [["甲"], ["\ufeff乙"]]),  # the mark that the input begins with is taken off
])  # fmt: skip
def test_chunks_hold_the_texts_of_a_read(stream, pieces, chunks):
    size = 2 if "a\nb" in pieces[0] else 2048
    assert list(map(texts, stream(*pieces, chunk_items=size))) == chunks
    assert stream("甲\n").size is None


def test_a_line_is_given_out_before_the_next_is_read(stream):
    given = stream("甲\n", "乙\n", "丙")
    lines = [([(text, f"<stdin>:{number}")], number) for number, text in enumerate("甲乙丙", 1)]
    assert [(chunk, given.lines) for chunk in given] == lines
    with pytest.raises(InputError, match="<stdin>:1: the input is empty"):
        list(stream("\ufeff"))


def test_lines_and_characters_may_be_cut_anywhere(stream):
    content = "甲乙\r\n\n𠮷e\u0301\n  丁".encode()
    for cut in range(len(content) + 1):
        for other in range(cut, len(content) + 1):
            pieces = [piece for piece in (content[:cut], content[cut:other], content[other:]) if piece]
            assert [t for chunk in stream(*pieces) for t in texts(chunk)] == ["甲乙", "", "𠮷e\u0301", "  丁"]


@pytest.mark.parametrize("wrong, message", [
    ("甲\n".encode("gb18030"), r"<stdin>:3: not UTF-8 \(byte 17 of the input\); convert it, .*gb18030"),
    (b'{"text": 1}\n', r'<stdin>:3: "text" is 1, not a string'),
    (b"[]\n", r"<stdin>:3: JSON \[\] is not an object"),
    (b"{\n", r"<stdin>:3: broken JSON at column 2"),
])  # fmt: skip
def test_a_wrong_line_is_an_error_after_the_lines_before_it(stream, wrong, message):
    begin = '{"text": "甲"}\n\n'.encode()
    for pieces in ((begin, wrong), (begin + wrong,)):
        chunks = iter(stream(*pieces))
        assert texts(next(chunks)) == ["甲"]
        with pytest.raises(InputError, match=message):
            next(chunks)


@pytest.mark.parametrize("content, at_once", [
    *((content, 4) for content in ("甲\n乙乙\n", "甲\r\n\r\n乙", '{"text": "甲"}\n\n')),
    ("\n".join(f"第{number}行" for number in range(1000)), 1000),
], ids=["LF", "CRLF", "JSON", "long"])  # fmt: skip
def test_a_file_is_read_in_parts_and_the_position_goes_from_0_to_its_size(write, monkeypatch, content, at_once):
    monkeypatch.setattr(text_files, "READ_BYTES", at_once)
    path = write(content)
    stream = TextStream(path)
    assert (stream.position, stream.size) == (0, path.stat().st_size)
    positions = [(stream.position, len(chunk)) for chunk in stream]
    assert positions == sorted(set(positions)) and max(size for _, size in positions) < 150
    assert stream.position == stream.size


# ---- gzip and other kinds of files
TEXT = "\ufeff" + "".join(f"第{number}行，今天\n" for number in range(20_000))
PACKED = gzip.compress(TEXT.encode())


def texts_of(source):
    return [text for chunk in TextStream(source) for text, _ in chunk]


def test_gzip_is_read_whole_and_as_a_stream_whatever_its_name(write, monkeypatch):
    path = str(write(PACKED))
    assert read_text(path) == (TEXT[1:], path)
    assert texts_of(path) == TEXT[1:].split("\n")[:-1]
    stream = TextStream(path)
    assert len(list(stream)) > 1 and stream.size is None  # how much is left is not known
    for kind in (io.BufferedReader, lambda raw: raw):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=kind(io.BytesIO(PACKED))))
        assert texts_of("-") == TEXT[1:].split("\n")[:-1]
    assert texts_of(write(gzip.compress("甲\n".encode()) + gzip.compress("乙".encode()))) == ["甲", "乙"]


TAR = tarfile.TarInfo("a.txt").tobuf()
DAMAGED, BINARY = "is packed by gzip and damaged", "binary data; unpack an archive"
NO_UTF_8 = "not UTF-8 .* if it is no text, unpack an archive"
REFUSED = {  # name -> (content, message)
    "end cut": (PACKED[:-4], DAMAGED),
    "cut": (PACKED[:5000], DAMAGED),
    "checksum": (PACKED[:-8] + bytes(8), DAMAGED),
    "middle": (PACKED[:100] + bytes(50) + PACKED[150:], DAMAGED),
    "more": (PACKED + b"x", DAMAGED),
    "bomb": (gzip.compress(b"a" * (1 << 22)), "unpacks to more than 100 times its size"),
    "tar": (TAR, BINARY),
    "tar.gz": (gzip.compress(TAR, mtime=0), BINARY),
    "docbin": (zlib.compress(TEXT.encode()), NO_UTF_8),
    "pdf": (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", BINARY),
    "mp3": (b"\xff\xfb\x90\x64\xff\n", NO_UTF_8),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("read", [read_text, texts_of])
def test_what_is_no_text_is_named(write, read, name, monkeypatch):
    monkeypatch.setattr(text_files, "MIN_UNPACKED_BYTES", 1 << 16)
    content, message = REFUSED[name]
    path = str(write(content, "data"))
    with pytest.raises(InputError, match=f"^{path}:.* ?{message}"):
        read(path)
