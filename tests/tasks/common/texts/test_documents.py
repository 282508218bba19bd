"""Texts, documents, and texts cut to a length."""

import json

import pytest

from tasks.common.errors import InputError
from tasks.common.texts.documents import cut_at_sentences, hold_out, read_documents, read_plain_texts


@pytest.mark.parametrize(
    "content, documents",
    [
        ("一\n二\n三", ["一", "二", "三"]),
        ("\n\n一\n二\n\n", ["一", "二"]),  # blank lines at the edges part nothing
        ("一\n二\n\n三", ["一\n二", "三"]),
        ("一\r\n二\r\n\r\n三\r\n", ["一\n二", "三"]),
        ("一\n \t\n\n二\n三", ["一", "二\n三"]),
        ("一\u3000\n\u3000二", ["一", "二"]),
        ("一\u2028二", ["一\u2028二"]),
        ('{"text": "一\\n\\n二", "sentence": "x"}\n\n{"sentence": "三"}\n{"text": " "}\n', ["一\n\n二", "三"]),
    ],
)
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
    with pytest.raises(InputError, match="two or more"):
        hold_out(documents[:1], 0.5)


def test_lines_and_json_records_give_the_same_texts(write):
    plain = write("\ufeff第一行\r\n\n  第二行 \u2028还是第二行\n", "texts.txt")
    found = ["第一行", "第二行 \u2028还是第二行"]
    records = write("  \n".join(json.dumps({"id": 1, "text": text}) + "\n" for text in found), "texts.jsonl")
    assert read_plain_texts(plain) == read_plain_texts(records) == found


@pytest.mark.parametrize("read", [read_plain_texts, lambda path: read_documents([path])])
def test_deep_json_is_refused(write, read):  # more: refused_files.yaml
    with pytest.raises(InputError, match="a.jsonl:1: "):
        read(write("[" * 100_000 + "\n", "a.jsonl"))


def test_pieces_are_the_whole_text_and_end_at_the_last_sentence_that_fits():
    text = "没有句号的一段很长的文字。短。" * 3 + "！？。" + "尾"
    for most in range(1, 12):
        pieces = cut_at_sentences(text, most)
        assert "".join(pieces) == text and min(map(len, pieces)) > 0 and max(map(len, pieces)) <= most
    text = "一二。三四五！”六七？八九十"
    assert cut_at_sentences(text, 100) == [text]
    assert cut_at_sentences(text, 8) == ["一二。三四五！”", "六七？八九十"]
    assert cut_at_sentences(text, 4) == ["一二。", "三四五！", "”六七？", "八九十"]
