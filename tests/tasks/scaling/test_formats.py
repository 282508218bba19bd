"""Files of many records: every record is found once, whatever the size of the parts; what is wrong is said of it; and
no key of a record is lost."""

import gzip

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.matching.data import prediction_records
from paddle_rope.tasks.scaling.formats import open_source, parts_of
from paddle_rope.tasks.scaling.worker import Job, answers, texts_of
from tests.tasks.scaling.conftest import WRITERS

KEYS = (("text",),)
TEXTS = ["一", "", "逗,号", '引"号', "换\n行", "换\r\n行", " 空格 ", *"abcdefghijklmnop"]


def read(path, size):
    """The records of a file, read in parts, and the parts."""
    found, parts = [], parts_of([str(path)], KEYS, size)
    source = open_source(str(path), KEYS)
    for part in reversed(parts):  # in any order
        of_part = list(source.read(part))
        assert len(of_part) == part.last - part.first + 1 <= size
        found = of_part + found
    return found, parts


@pytest.mark.parametrize("size", [1, 4, 7, 23, 1000])
@pytest.mark.parametrize("name", WRITERS)
def test_every_record_is_found_once(name, size, tmp_path):
    is_text = ".txt" in name
    texts = [text.replace("\r", "").replace("\n", "") for text in TEXTS] if is_text else TEXTS
    WRITERS[name](tmp_path / name, [{"id": str(number), "text": text} for number, text in enumerate(texts)])
    found, parts = read(tmp_path / name, size)
    own = [{"line": n + 1} if is_text else {"id": str(n)} for n in range(len(texts))]
    of_line = [{**one, "text": text} for one, text in zip(own, texts)]
    assert [one.record for one in found] == of_line
    firsts = range(1, len(texts) + 1, size)
    assert [(part.number, part.first) for part in parts] == list(enumerate(firsts)) and parts[-1].last == len(texts)


JSON_LINES = [
    *(b'\xef\xbb\xbf{"text": "a"}', b"", b'{"text": ', b"[1]", b'{"text": "a", "text": "b"}', b"\xff"),
    b'{"text": "z"}',
]
IN_JSON = [  # (line, text), or (line, reason why there is no record, what is there)
    *((1, "a"), (2, "", ""), (3, "broken JSON", '{"text": '), (4, "JSON [1]", "[1]")),
    *((5, "key 'text'", '{"text": "a", "text": "b"}'), (6, "not UTF-8", "\\xff"), (7, "z")),
]
CSV = [b"\xef\xbb\xbfid,text", b'1,"a\nb"', b"2", b"", b'3,"x"y', b"4,\xff", b"5,ok", b'6,"open\nend']
IN_CSV = [
    *((2, "a\nb"), (4, "1 values", "2"), (5, "", ""), (6, "broken CSV", '3,"x"y')),
    *((7, "not UTF-8", "4,\\xff"), (8, "ok"), (9, "broken CSV", '6,"open\nend')),
]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("name, content, expected", [
    ("in.jsonl", b"\n".join(JSON_LINES), IN_JSON),
    ("in.jsonl", b"\r\n".join(JSON_LINES), IN_JSON),
    ("in.csv", b"\r\n".join(CSV), IN_CSV),
], ids=["JSON lines", "JSON lines, CRLF", "CSV"])  # fmt: skip
def test_bad_records_are_found_in_their_place(tmp_path, name, content, expected, size):
    (tmp_path / name).write_bytes(content)
    found, _ = read(tmp_path / name, size)
    for one, (line, *said) in zip(found, expected, strict=True):
        if len(said) == 1:
            assert (one.line, one.record["text"], one.reason) == (line, *said, "")
        else:
            assert (one.line, one.record, one.raw) == (line, None, said[1])
            assert one.reason.startswith(said[0]) and bool(one.reason) == bool(said[0])


def test_wrong_bytes_and_damage_in_parquet_are_said(tmp_path):
    path = tmp_path / "in.parquet"
    strings = pyarrow.array([b"a", b"\xff", b"c"]).view(pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table({"text": strings}), path)
    found, _ = read(path, 2)
    assert [(one.line, one.record and one.record["text"]) for one in found] == [(1, "a"), (2, None), (3, "c")]
    assert "not UTF-8" in found[1].reason
    with pytest.raises(InputError, match="in.parquet: is damaged"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("paddle_rope.tasks.scaling.formats.PARQUET_ROWS", -1)  # as for wrong numbers in a page
        read(path, 2)


def test_what_would_fill_the_memory_is_refused_before_anything_is_written(write, monkeypatch):
    monkeypatch.setattr("paddle_rope.tasks.common.texts.text_files.MIN_UNPACKED_BYTES", 1 << 16)
    bombs = [str(write(gzip.compress(b"a" * (1 << 20)), "a.txt.gz")), str(write(b"", "a.parquet"))]
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a" * 100] * 10_000}), bombs[1])
    for bomb in bombs:
        with pytest.raises(InputError, match=f"{bomb}: unpacks to more than 100 times its size"):
            parts_of([bomb], KEYS, 10)
    monkeypatch.setattr("paddle_rope.tasks.scaling.formats.MAX_RECORD_BYTES", 20)
    for name in ("b.txt", "b.csv"):
        parts_of([str(write(b"text\n" + b"a" * 19 + b"\n" * 2, name))], KEYS, 10)
        with pytest.raises(InputError, match=f"{name}:3: a record of more than 20 bytes"):
            parts_of([str(write(b"text\n\n" + b"a" * 21, name))], KEYS, 10)


NER, MATCHING = Job("ner", (), "").keys, Job("matching", (), "").keys


@pytest.mark.parametrize("keys, name, content", [
    *((MATCHING, "a.csv", header + "\na,b,c\n") for header in ("sentence1,sentence2,x", "A,B,C")),
    *((NER, name, "id\ttext\n1\tx\n") for name in ("a.tsv", "a.txt")), (NER, "a.csv", 'text,"id" \nx,1\n'),
])  # fmt: skip
def test_columns_have_the_keys_of_the_recipe(write, keys, name, content):
    path = str(write(content, name))  # more that are refused: tests/tasks/files.yaml
    assert len(parts_of([path, path], keys, 10)) == 2
    with pytest.raises(InputError, match=f"{name}.*sentence1.* and .*sentence2"):
        parts_of([str(write("sentence1,B\na,b\n", name))], MATCHING, 10)


def predict(items):
    """Finds the length of a text; equal texts match."""
    if isinstance(items[0], str):
        return [{"text": text, "entities": [len(text)]} for text in items]
    scores = np.array([[float(first == other) for other in others] for first, *others in items])
    return list(prediction_records(items, scores, 0.5))


PAIR, TRIPLE = {"sentence1": "a", "sentence2": "a"}, {"A": "x", "B": "y", "C": "x"}


@pytest.mark.parametrize("keys, records, expected", [
    (NER, [{"id": 7, "text": "好", "url": None}], [{"id": 7, "url": None, "text": "好", "entities": [1]}]),
    (
        *((("content",),), [{"content": "好", "text": "old", "entities": 1, "input_entities": 2}]),
        [{"text": "好", "entities": [1], "input_text": "old", "input_input_entities": 1, "input_entities": 2}],
    ),
    (
        *(MATCHING, [{**PAIR, "label": "0"}, {**TRIPLE, "id": 1}, PAIR]),  # in order
        [
            {**PAIR, "score": 1.0, "label": 1, "input_label": "0"},
            {**TRIPLE, "scores": [0.0, 1.0], "label": "C", "id": 1},
            {**PAIR, "score": 1.0, "label": 1},
        ],
    ),
])  # fmt: skip
def test_no_key_of_a_record_is_lost(keys, records, expected):
    items = [(record, texts_of(record, "f:1", keys)) for record in records]
    assert list(answers(predict, keys, items)) == expected


def test_a_pair_with_an_empty_text_is_refused():
    with pytest.raises(InputError, match='^f:1: "sentence2" is empty'):
        texts_of({**PAIR, "sentence2": " "}, "f:1", MATCHING)
