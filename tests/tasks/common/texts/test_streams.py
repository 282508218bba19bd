"""Texts are read as they come; what they are is tested with read_texts in test_data.py."""

import io
from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.common.texts import text_files
from tasks.common.texts.json_records import distinct_keys
from tasks.common.texts.streams import TextStream


class Pipe(io.RawIOBase):
    """Gives its pieces one a read, as a pipe whose writer waits."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self.pieces.pop(0) if self.pieces else b""
        buffer[: len(piece)] = piece
        return len(piece)


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


@pytest.mark.parametrize(
    "pieces, chunks",
    [
        (["\n", " \n", "甲\n", "\n"], [["", " ", "甲"], [""]]),  # blank lines wait for the line that decides
        (["\n", " \n", '{"text": "甲"}\n', "\n", '{"text": ""}'], [["甲"], [""]]),
        (["\n", "\t\n"], [["", "\t"]]),
        (["a\nb\nc\nd\ne\n", "f\n"], [["a", "b"], ["c", "d"], ["e"], ["f"]]),  # of a read, up to a bound
        (['{"text": "叶老桂", "label": {"name": {"叶老桂": [[0, 2]]}}, "id": 7}\n'], [["叶老桂"]]),
        (["\ufeff甲\n", "\ufeff乙\n"], [["甲"], ["\ufeff乙"]]),  # the mark that the input begins with is taken off
    ],
)
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


@pytest.mark.parametrize(
    "wrong, message",
    [
        ("甲\n".encode("gb18030"), r"<stdin>:3: not UTF-8 \(byte 17 of the input\); convert it, .*gb18030"),
        (b'{"text": 1}\n', r'<stdin>:3: "text" is 1, not a string'),
        (b"[]\n", r"<stdin>:3: JSON \[\] is not an object"),
        (b"{\n", r"<stdin>:3: broken JSON at column 2"),
    ],
)
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


def test_a_repeated_key_is_found_without_comparing_every_two():
    class Key(str):
        compared = 0

        def __eq__(self, other):
            Key.compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    pairs = [(Key(f"key {number}"), 1) for number in range(2000)]
    with pytest.raises(InputError, match="key 'key 1999' is repeated"):
        distinct_keys([*pairs, (Key("key 1999"), 2)], "x:1")
    assert Key.compared < 4 * len(pairs)
