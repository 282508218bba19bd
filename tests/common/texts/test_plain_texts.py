"""Texts without labels: lines of a file, cut to a length."""

import json

import pytest

from tasks.common.errors import InputError
from tasks.common.texts.plain_texts import cut_at_sentences, read_plain_texts


def test_lines_and_json_records_give_the_same_texts(tmp_path):
    plain, records = tmp_path / "texts.txt", tmp_path / "texts.jsonl"
    plain.write_bytes("\ufeff第一行\r\n\n  第二行 \u2028还是第二行\n".encode())
    records.write_text(
        "  \n".join(json.dumps({"id": 1, "text": text}) + "\n" for text in ["第一行", "第二行 \u2028还是第二行"])
    )
    assert read_plain_texts(plain) == read_plain_texts(records) == ["第一行", "第二行 \u2028还是第二行"]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.txt", " \n\n", "a.txt: no text in it"),
        ("a.json", '{"text": "甲"}\n{"title": "乙"}\n', 'a.json:2: there is no "text"'),
        ("a.jsonl", '{"text": 7}\n', 'a.jsonl:1: "text" is 7, not a string'),
        ("a.jsonl", "甲\n", "a.jsonl:1: broken JSON"),
        ("a.jsonl", "[1]\n", "a.jsonl:1: .* is not an object"),
        ("a.jsonl", '{"text": "坏\\ud800字"}\n', "a.jsonl:1: .* half of a surrogate pair"),
        ("a.jsonl", "[" * 100_000 + "\n", "a.jsonl:1: "),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_plain_texts(path)


def test_cuts_are_at_the_last_end_of_a_sentence_that_fits():
    text = "一二。三四五！”六七？八九十"
    assert cut_at_sentences(text, 100) == [text]
    assert cut_at_sentences(text, 8) == ["一二。三四五！”", "六七？八九十"]
    assert cut_at_sentences(text, 4) == ["一二。", "三四五！", "”六七？", "八九十"]


@pytest.mark.parametrize("max_characters", range(1, 12))
def test_pieces_are_the_whole_text_and_none_is_too_long(max_characters):
    text = "没有句号的一段很长的文字。短。" * 3 + "！？。" + "尾"
    pieces = cut_at_sentences(text, max_characters)
    assert "".join(pieces) == text
    assert min(map(len, pieces)) > 0 and max(map(len, pieces)) <= max_characters
