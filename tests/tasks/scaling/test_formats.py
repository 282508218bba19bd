"""Files of many records: every record is found once, whatever the size of the parts; what is wrong is said of it; and
no key of a record is lost."""

import gzip
import json
import math

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.scaling.formats import as_json
from tasks.scaling.sources import find_files, open_source, parts_of
from tasks.scaling.worker import Job, answers, texts_of
from tests.tasks.scaling.conftest import WRITERS, write_csv, write_parquet

KEYS = (("text",),)
RECORDS = [
    {"id": str(number), "text": text}
    for number, text in enumerate(["一", "", "逗,号", '引"号', "换\n行", "换\r\n行", " 空格 ", *"abcdefghijklmnop"])
]
IN_LINES = [{**record, "text": record["text"].replace("\r", "").replace("\n", "")} for record in RECORDS]


def read(path, size, keys=KEYS):
    """The records of a file, read in parts, and the parts."""
    parts = parts_of([str(path)], keys, size)
    found = []
    source = open_source(str(path), keys)
    for part in reversed(parts):  # in any order
        of_part = list(source.read(part))
        assert len(of_part) == part.last - part.first + 1 <= size
        found = of_part + found
    return found, parts


@pytest.mark.parametrize("size", [1, 4, 7, 23, 1000])
@pytest.mark.parametrize("name", WRITERS)
def test_every_record_is_found_once(name, size, tmp_path):
    records = IN_LINES if ".txt" in name else RECORDS
    WRITERS[name](tmp_path / name, records)
    found, parts = read(tmp_path / name, size)
    if ".txt" in name:
        records = [{"line": number, "text": record["text"]} for number, record in enumerate(records, 1)]
    assert [one.record for one in found] == records
    assert [part.first for part in parts] == list(range(1, len(records) + 1, size))
    assert parts[-1].last == len(records)
    assert [part.number for part in parts] == list(range(len(parts)))


JSON_LINES = ['\ufeff{"text": "好"}', "", '{"text": ', "[1]", '{"text": "a", "text": "b"}', "\udcff", '{"text": "末"}']
JSON_BYTES = [line.encode("utf-8", "surrogateescape") for line in JSON_LINES]
CSV_BYTES = [b"\xef\xbb\xbfid,text", b'1,"a\nb"', b"2", b"", b'3,"x"y', b"4,\xff", b"5,ok", b'6,"open\nend']
GOOD = "good"  # in place of the reason why there is no record


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    "name, content, expected",
    [
        *(
            (
                *("in.jsonl", end.join(JSON_BYTES)),
                [
                    *[(1, GOOD, "好"), (2, "", ""), (3, "broken JSON", '{"text": '), (4, "JSON [1]", "[1]")],
                    *[(5, "key 'text'", JSON_LINES[4]), (6, "not UTF-8", "\\xff"), (7, GOOD, "末")],
                ],
            )
            for end in (b"\n", b"\r\n")
        ),
        (
            *("in.csv", b"\r\n".join(CSV_BYTES)),
            [
                *[(2, GOOD, "a\nb"), (4, "1 columns", "2"), (5, "", ""), (6, "broken CSV", '3,"x"y')],
                *[(7, "not UTF-8", "4,\\xff"), (8, GOOD, "ok"), (9, "broken CSV", '6,"open\nend')],
            ],
        ),
    ],
    ids=["JSON lines", "JSON lines, CRLF", "CSV"],
)
def test_bad_records_are_found_in_their_place(tmp_path, name, content, expected, size):
    (tmp_path / name).write_bytes(content)
    found, _ = read(tmp_path / name, size)
    assert [one.line for one in found] == [line for line, *_ in expected]
    for one, (_, reason, text) in zip(found, expected):
        if reason == GOOD:
            assert (one.reason, one.record["text"]) == ("", text)
        else:
            assert one.record is None and one.raw == text
            assert one.reason.startswith(reason) and bool(one.reason) == bool(reason)


def test_folder_gives_its_files_in_order(tmp_path):
    for name in ("b.txt", "a.jsonl", "_SUCCESS", ".hidden.txt"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "folder.txt").mkdir()
    assert find_files([str(tmp_path)]) == [str(tmp_path / "a.jsonl"), str(tmp_path / "b.txt")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["nope.txt"], "nope.txt: no such file"),
        (["empty"], "empty: no files"),
        (["a.md"], "a.md: unknown kind"),
        (["a.txt", "folder"], "a.txt: is given twice"),
    ],
)
def test_wrong_inputs_are_told(tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "folder"):
        (tmp_path / name).mkdir()
    for name in ("a.txt", "a.md"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder" / "b.txt").symlink_to(tmp_path / "a.txt")
    with pytest.raises(InputError, match=message):
        find_files(given)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *((name, content, "no records") for name, content in (("a.txt", b""), ("a.csv", b""), ("a.csv", b"id,text\n"))),
        ("a.csv", b"id,title\n1,2\n", r"a.csv:1: no column 'text' .*--text_column"),
        ("a.csv", b"text,text\n1,2\n", "a.csv:1: column 'text'"),
        ("a.csv", "编号,text\n".encode("gb18030"), "a.csv:1: not UTF-8"),
        ("a.csv", b'"text\n', "a.csv:1: broken CSV"),
        ("a.json", b'[{"text": "x"}]', "a.json: is a JSON list"),
        ("a.txt", b"text,id\nx,1\n", "a.txt: is a table"),
        ("a.txt.gz", gzip.compress(b"a O\nb B-X\nc O\n", mtime=0), "a.txt.gz: is tagged text"),
        ("a.parquet", b"PAR1 none", "a.parquet: is no Parquet file"),
        ("a.csv", b"\x1f\x8bx", "a.csv: is packed by gzip and damaged"),
        ("a.jsonl.gz", gzip.compress(b"x\n" * 1000, mtime=0)[:-9], "a.jsonl.gz: is packed by gzip and damaged"),
    ],
)
def test_files_that_cannot_be_read_are_told(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        parts_of([str(tmp_path / name)], KEYS, 10)


def test_files_of_matching_have_the_texts_of_a_pair_or_of_a_triple(tmp_path):
    keys = Job("matching", (), "").keys
    write_csv(tmp_path / "pairs.csv", [{"sentence1": "a", "sentence2": "b"}])
    write_parquet(tmp_path / "triples.parquet", [{"A": "a", "B": "b", "C": "c"}])
    assert len(parts_of([str(tmp_path / "pairs.csv"), str(tmp_path / "triples.parquet")], keys, 10)) == 2
    write_csv(tmp_path / "wrong.csv", [{"sentence1": "a", "B": "b"}])
    (tmp_path / "wrong.txt").write_text("x")
    for name in ("wrong.csv", "wrong.txt"):
        with pytest.raises(InputError, match=f"{name}.*sentence1.* and .*sentence2"):
            parts_of([str(tmp_path / name)], keys, 10)


class Predictor:
    """Finds the length of a text; equal texts match."""

    threshold = 0.5

    def __call__(self, texts):
        return [{"text": text, "entities": [len(text)]} for text in texts]

    def score(self, pairs):
        return np.array([float(a == b) for a, b in pairs], dtype=np.float32)

    def score_triples(self, triples):
        return np.array([[float(a == b), float(a == c)] for a, b, c in triples], dtype=np.float32)


@pytest.mark.parametrize(
    "task, column, record, answer",
    [
        ("ner", "text", {"id": 7, "text": "好", "url": None}, {"id": 7, "url": None, "text": "好", "entities": [1]}),
        (
            *("ner", "content", {"content": "好", "text": "old", "entities": 1, "input_entities": 2}),
            {"text": "好", "entities": [1], "input_text": "old", "input_input_entities": 1, "input_entities": 2},
        ),
        (
            *("matching", "text", {"sentence1": "a", "sentence2": "a", "label": "0"}),
            {"sentence1": "a", "sentence2": "a", "score": 1.0, "label": 1, "input_label": "0"},
        ),
        (
            *("matching", "text", {"A": "x", "B": "y", "C": "x", "id": 1}),
            {"A": "x", "B": "y", "C": "x", "scores": [0.0, 1.0], "label": "C", "id": 1},
        ),
    ],
)
def test_no_key_of_a_record_is_lost(task, column, record, answer):
    keys = Job(task, (), "", column).keys
    assert list(answers(Predictor(), keys, [(record, texts_of(record, "f:1", keys))])) == [answer]


def test_pairs_and_triples_are_answered_in_order():
    items = [({}, texts) for texts in (("a", "a"), ("x", "y", "x"), ("b", "b", "a"), ("a", "b"))]
    found = answers(Predictor(), Job("matching", (), "").keys, items)
    assert [answer["label"] for answer in found] == [1, "C", "B", 0]


@pytest.mark.parametrize(
    "task, record, message",
    [
        ("ner", {}, 'no "text"'),
        ("ner", {"text": math.nan}, '"text" is nan'),
        ("ner", {"text": "a\0b"}, '"text" .*NUL at character 1'),
        ("ner", {"text": "\ud800"}, '"text" .*surrogate'),
        ("matching", {"sentence1": "a", "sentence2": " "}, '"sentence2" is empty'),
    ],
)
def test_texts_that_no_model_reads_are_refused(task, record, message):
    with pytest.raises(InputError, match=f"^f:1: .*{message}"):
        texts_of(record, "f:1", Job(task, (), "").keys)


def test_every_record_can_be_written():
    assert as_json({"a": "好"}) == '{"a": "好"}\n'
    assert json.loads(as_json({"a": "\ud800好"}).encode("utf-8")) == {"a": "\ud800好"}
    assert json.loads(as_json({"a": b"x\xff", "b": {1}})) == {"a": "x\\xff", "b": "{1}"}
