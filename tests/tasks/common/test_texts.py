"""Texts in files: the form by the content, tables, documents, texts cut to a length; texts are read as they come, and
unpacked within bounds; other kinds of files are named."""

import gzip
import io
import json
import tarfile
import zlib
from types import SimpleNamespace

import pytest

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts import tables, text_files
from paddle_rope.tasks.common.texts.documents import cut_at_sentences, hold_out, read_documents, read_plain_texts
from paddle_rope.tasks.common.texts.forms import Form, form_of, records
from paddle_rope.tasks.common.texts.streams import TextStream
from paddle_rope.tasks.common.texts.tables import table_records
from paddle_rope.tasks.common.texts.text_files import read_text
from tests.tasks.conftest import FILES, Pipe
from tests.tasks.ner.conftest import error_of

FORMS = {Form[name.upper().replace(" ", "_")]: contents for name, contents in FILES["forms"].items()}


@pytest.mark.parametrize("form, content", [(form, content) for form in FORMS for content in FORMS[form]])
def test_the_first_lines_decide(form, content):
    assert form_of(content.split("\n")) is form


@pytest.mark.parametrize("content, said", [
    ('[["甲", {"text": "乙"}]]', "x: record 1: JSON .* is not an object"),
    ("content,\n甲,", "x:1: broken JSON"),  # the last column has no name, so this is no table
])  # fmt: skip
def test_what_holds_no_records_is_refused(content, said):
    with pytest.raises(InputError, match=said):
        list(records(content.split("\n"), "x"))


def read(content):
    return list(table_records(content.split("\n"), "x"))


@pytest.mark.parametrize("content, records", FILES["rows"])
def test_rows_are_records_with_the_line_with_which_they_begin(content, records):
    assert read(content) == [(f"x:{line}", record) for line, record in records]


def test_a_quote_that_never_ends_is_found_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(tables, "MAX_FIELD_CHARACTERS", 1000)
    message = error_of(read, 'text\n"' + "a\n" * 2000)
    assert message.startswith("x:2: broken CSV (field larger")  # more: tests/tasks/files.yaml


@pytest.mark.parametrize("content, documents", FILES["documents"])
def test_blank_lines_part_documents_where_there_are_some_else_lines_do(write, content, documents):
    assert read_documents([write(content)]) == documents
    twice = [write("二\n一\n二", "a.txt"), write("三\n一", "b.txt")]
    assert read_documents(twice) == ["二", "一", "三"]  # once each, in the order of the files


@pytest.mark.parametrize("number, fraction, held", [(100, 0.1, 10), (100, 0.001, 1), (3, 0.9, 2), (2, 0.5, 1)])
def test_share_of_documents_is_held_out_the_same_each_time(number, fraction, held):
    documents = [f"text {n}" for n in range(number)]
    train, dev = parts = hold_out(documents, fraction)
    assert len(dev) == held and sorted(train + dev, key=documents.index) == documents
    assert parts == tuple(sorted(part, key=documents.index) for part in parts) == hold_out(documents, fraction)
    assert "two or more" in error_of(hold_out, documents[:1], 0.5)


def test_lines_and_json_records_give_the_same_texts(write):
    plain = write("\ufeff第一行\r\n\n  第二行 \u2028还是第二行\n", "texts.txt")
    found = ["第一行", "第二行 \u2028还是第二行"]
    records = write("  \n".join(json.dumps({"id": 1, "text": text}) + "\n" for text in found), "texts.jsonl")
    assert read_plain_texts(plain) == read_plain_texts(records) == found


def test_pieces_are_the_whole_text_and_end_at_the_last_sentence_that_fits():
    text = "没有句号的一段很长的文字。短。" * 3 + "！？。" + "尾"
    for most in range(1, 12):
        pieces = cut_at_sentences(text, most)
        assert "".join(pieces) == text and min(map(len, pieces)) > 0 and max(map(len, pieces)) <= most
    text = "一二。三四五！”六七？八九十"
    assert cut_at_sentences(text, 100) == [text]
    assert cut_at_sentences(text, 8) == ["一二。三四五！”", "六七？八九十"]
    assert cut_at_sentences(text, 4) == ["一二。", "三四五！", "”六七？", "八九十"]


# ---- streams
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


@pytest.mark.parametrize("pieces, chunks", FILES["chunks"])
def test_chunks_hold_the_texts_of_a_read(stream, pieces, chunks):
    size = 2 if "a\nb" in pieces[0] else 2048
    assert list(map(texts, stream(*pieces, chunk_items=size))) == chunks
    assert stream("甲\n").size is None


def test_a_line_is_given_out_before_the_next_is_read(stream):
    given = stream("甲\n", "乙\n", "丙")
    lines = [([(text, f"<stdin>:{number}")], number) for number, text in enumerate("甲乙丙", 1)]
    assert [(chunk, given.lines) for chunk in given] == lines
    assert "<stdin>:1: the input is empty" in error_of(list, stream("\ufeff"))


def test_lines_and_characters_may_be_cut_anywhere(stream):
    content = "甲乙\r\n\n𠮷e\u0301\n  丁".encode()
    for cut in range(len(content) + 1):
        for other in range(cut, len(content) + 1):
            pieces = [piece for piece in (content[:cut], content[cut:other], content[other:]) if piece]
            assert [t for chunk in stream(*pieces) for t in texts(chunk)] == ["甲乙", "", "𠮷e\u0301", "  丁"]


@pytest.mark.parametrize("wrong, message", [
    ("甲\n".encode("gb18030"), r"<stdin>:3: not UTF-8 \(byte 17 of the input\); convert it, .*gb18030"),
    (b'{"text": 1}\n', r'<stdin>:3: "text" is 1, not a string'),
])  # fmt: skip
def test_a_wrong_line_is_an_error_after_the_lines_before_it(stream, wrong, message):
    begin = '{"text": "甲"}\n\n'.encode()
    for pieces in ((begin, wrong), (begin + wrong,)):
        chunks = iter(stream(*pieces))
        assert texts(next(chunks)) == ["甲"]
        with pytest.raises(InputError, match=message):
            next(chunks)


@pytest.mark.parametrize("content, at_once", [("甲\r\n\r\n乙", 4), ("第几行\n" * 1000, 1000)], ids=["short", "long"])
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
    "cut": (PACKED[:5000], DAMAGED),
    "checksum": (PACKED[:-8] + bytes(8), DAMAGED),
    "middle": (PACKED[:100] + bytes(50) + PACKED[150:], DAMAGED),
    "more": (PACKED + b"x", DAMAGED),
    "bomb": (gzip.compress(b"a" * (1 << 22)), "unpacks to more than 100 times its size"),
    "tar": (TAR, BINARY),
    "tar.gz": (gzip.compress(TAR, mtime=0), BINARY),
    "docbin": (zlib.compress(TEXT.encode()), NO_UTF_8),
    "pdf": (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", BINARY),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("read", [read_text, texts_of])
def test_what_is_no_text_is_named(write, read, name, monkeypatch):
    monkeypatch.setattr(text_files, "MIN_UNPACKED_BYTES", 1 << 16)
    content, message = REFUSED[name]
    path = str(write(content, "data"))
    with pytest.raises(InputError, match=f"^{path}:.* ?{message}"):
        read(path)
