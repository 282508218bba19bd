"""Each format of predictions is read back by the readers of labeled data."""

import io
import json

import pytest

from tasks.common.errors import InputError
from tasks.ner.data.reading import Entity, read_examples
from tasks.ner.prediction.output_formats import FORMATS, write_predictions


def record(text, *entities):
    keys = ("start", "end", "type", "score")
    entities = [dict(zip(keys, entity)) for entity in entities]
    return {"text": text, "entities": [{**e, "text": text[e["start"] : e["end"]]} for e in entities]}


FLAT = [
    record("叶老桂在浙商银行", (0, 3, "name", 7.25), (4, 8, "company", 1.5)),
    record("没有"),
    record("a b\t𠮷\u2028。", (2, 5, "书", 0.125)),
]
NESTED = record(
    "北京大学附属医院", (0, 2, "place", 3.0), (0, 4, "school", 2.0), (0, 8, "hospital", 1.0), (2, 4, "x", 0.5)
)


def write(records, format, where=None):
    file = io.StringIO()
    left_out = write_predictions(records, where or [f"in:{n}" for n in range(1, len(records) + 1)], file, format)
    return file.getvalue(), left_out


def read(tmp_path, content, format=None):
    path = tmp_path / "predictions"
    path.write_text(content, encoding="utf-8", newline="")
    return [(example.text, list(example.entities)) for example in read_examples(path, format)]


def expected(records):
    return [(r["text"], [Entity(e["start"], e["end"], e["type"]) for e in r["entities"]]) for r in records]


@pytest.mark.parametrize("format", FORMATS)
def test_flat_predictions_read_back_the_same(tmp_path, format):
    content, left_out = write(FLAT, format)
    assert left_out == 0
    assert read(tmp_path, content) == expected(FLAT)


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "bio"])
def test_nested_predictions_read_back_the_same(tmp_path, format):
    content, left_out = write([NESTED], format)
    assert left_out == 0
    assert read(tmp_path, content) == [(NESTED["text"], sorted(expected([NESTED])[0][1]))]


def test_bio_keeps_the_highest_scores_and_counts_what_it_leaves_out(tmp_path):
    content, left_out = write([NESTED], "bio")
    assert left_out == 2
    assert read(tmp_path, content) == [(NESTED["text"], [Entity(0, 2, "place"), Entity(2, 4, "x")])]


def test_jsonl_is_the_record_itself_with_scores():
    content, _ = write([NESTED, *FLAT], "jsonl")
    assert [json.loads(line) for line in content.split("\n")[:-1]] == [NESTED, *FLAT]
    assert "北京" in content  # not \u escapes


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_text_keeps_its_line(format):
    content, _ = write([record(""), record("甲")], format)
    lines = content.split("\n")
    assert lines[0] == "" if format == "bio" else json.loads(lines[0])["text"] == ""
    assert "甲" in lines[1]


@pytest.mark.parametrize(
    "bad, message",
    [
        (record("一\n二"), r"in:2: the text has '\\n'"),
        (record("一", (0, 1, "a b", 1.0)), r"in:2: the entity type 'a b' cannot be part of a tag"),
    ],
)
def test_bio_refuses_what_a_line_cannot_hold_and_names_the_place(bad, message):
    with pytest.raises(InputError, match=message):
        write([record("甲"), bad], "bio")


def test_bio_takes_the_earlier_of_entities_that_score_the_same(tmp_path):
    content, left_out = write([record("abcdef", (3, 5, "d", 0.5), (2, 4, "c", 0.5), (4, 6, "e", 0.5))], "bio")
    assert left_out == 1
    assert read(tmp_path, content) == [("abcdef", [Entity(2, 4, "c"), Entity(4, 6, "e")])]
