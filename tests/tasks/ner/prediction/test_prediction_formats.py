"""Each format of predictions is read back by the readers of labeled data."""

import io
import json
import math

import pytest

from tasks.common.errors import InputError
from tasks.ner.data.reading import Entity, read_examples
from tasks.ner.prediction.output_formats import FORMATS, PredictionWriter


def record(text, *entities):
    keys = ("start", "end", "type", "score")
    entities = [dict(zip(keys, entity)) for entity in entities]
    entities = [{**entity, "probability": 1 / (1 + math.exp(-entity["score"]))} for entity in entities]
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
    with PredictionWriter(file, format, "my model") as writer:
        writer.write(records, where or [f"in:{n}" for n in range(1, len(records) + 1)])
    return file.getvalue(), writer.left_out


def read(tmp_path, content, format=None):
    path = tmp_path / "predictions"
    path.write_text(content, encoding="utf-8", newline="")
    return [(example.text, list(example.entities)) for example in read_examples(path, format)]


def expected(records):
    return [(r["text"], [Entity(e["start"], e["end"], e["type"]) for e in r["entities"]]) for r in records]


LABELED = [format for format in FORMATS if format != "labelstudio"]


@pytest.mark.parametrize("format", LABELED)
def test_flat_predictions_read_back_the_same(tmp_path, format):
    content, left_out = write(FLAT, format)
    assert left_out == 0
    assert read(tmp_path, content) == expected(FLAT)


@pytest.mark.parametrize("format", [format for format in LABELED if format != "bio"])
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


@pytest.mark.parametrize("format", LABELED)
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


def test_label_studio_gets_one_list_of_tasks_whatever_the_chunks():
    file = io.StringIO()
    with PredictionWriter(file, "labelstudio", "my model") as writer:
        writer.write(FLAT[:2], ["in:1", "in:2"])
        writer.write(FLAT[2:], ["in:3"])
    tasks = json.loads(file.getvalue())
    assert [task["data"] for task in tasks] == [{"text": record["text"]} for record in FLAT]
    first, second, third = (task["predictions"] for task in tasks)
    names = {"from_name": "label", "to_name": "text", "type": "labels"}
    assert first == [{
        "model_version": "my model",
        "score": 0.8176,  # the least sure entity
        "result": [
            {**names, "value": {"start": 0, "end": 3, "text": "叶老桂", "labels": ["name"]}, "score": 0.9993},
            {**names, "value": {"start": 4, "end": 8, "text": "浙商银行", "labels": ["company"]}, "score": 0.8176},
        ],
    }]  # fmt: skip
    assert second == [{"model_version": "my model", "score": 1.0, "result": []}]
    assert third[0]["result"][0]["value"] == {"start": 2, "end": 5, "text": "b\t𠮷", "labels": ["书"]}


def test_label_studio_gets_an_empty_list_of_no_texts():
    content, _ = write([], "labelstudio")
    assert json.loads(content) == []


def test_an_unfinished_list_for_label_studio_stays_open():
    file = io.StringIO()
    with pytest.raises(KeyboardInterrupt), PredictionWriter(file, "labelstudio") as writer:
        writer.write(FLAT, ["in:1", "in:2", "in:3"])
        raise KeyboardInterrupt
    with pytest.raises(ValueError):
        json.loads(file.getvalue())
