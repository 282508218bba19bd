"""Each format of predictions is read back by the readers of labeled data."""

import io
import json

import pytest

from tasks.common.errors import InputError
from tasks.ner.config import probability
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Entity, as_record
from tasks.ner.prediction.output_formats import FORMATS, PredictionWriter


def record(text, *entities):
    return as_record(text, [Entity(*entity, probability(entity[3], 1.0)) for entity in entities])


FLAT = [
    record("叶老桂在浙商银行", (0, 3, "name", 7.25), (4, 8, "company", 1.5)),
    record("没有"),
    record("a b\t𠮷\u2028。", (2, 5, "书", 0.125)),
]
NESTED = record(
    "北京大学附属医院", (0, 2, "place", 3.0), (0, 4, "school", 2.0), (0, 8, "hospital", 1.0), (2, 4, "x", 0.5)
)
EQUAL = record("abcdef", (2, 4, "c", 0.5), (3, 5, "d", 0.5), (4, 6, "e", 0.5))


def write(records, format):
    file = io.StringIO()
    with PredictionWriter(file, format, "my model") as writer:
        for number, one in enumerate(records, 1):
            writer.write([one], [f"in:{number}"])
    return file.getvalue(), writer.left_out


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "labelstudio"])
@pytest.mark.parametrize(
    "records, of_bio",
    [
        (FLAT, [[0, 1], [], [0]]),
        ([NESTED], [[0, 3]]),  # the highest scores
        ([EQUAL], [[0, 2]]),  # the earlier of those that score the same
    ],
)
def test_predictions_read_back_the_same_but_for_overlaps_in_bio(tmp_path, format, records, of_bio):
    content, left_out = write(records, format)
    if format == "jsonl":
        assert [json.loads(line) for line in content.split("\n")[:-1]] == records
    (tmp_path / "written").write_text(content, encoding="utf-8", newline="")
    read = read_examples(tmp_path / "written")
    assert [example.text for example in read] == [one["text"] for one in records]
    for example, one, kept in zip(read, records, of_bio):
        entities = [one["entities"][index] for index in kept] if format == "bio" else one["entities"]
        expected = [(entity["start"], entity["end"], entity["type"]) for entity in entities]
        assert [entity[:3] for entity in example.entities] == sorted(expected)
    assert left_out == (sum(len(one["entities"]) - len(kept) for one, kept in zip(records, of_bio)) * (format == "bio"))
    lines = write([record(""), record("甲")], format)[0].split("\n")  # an empty text keeps its line
    assert (lines[0] == "" if format == "bio" else json.loads(lines[0])["text"] == "") and "甲" in lines[1]


@pytest.mark.parametrize("bad", [record("一\n二"), record("一", (0, 1, "a b", 1.0))])
def test_bio_refuses_what_a_line_cannot_hold_and_names_the_place(bad):
    with pytest.raises(InputError, match="^in:2: "):
        write([record("甲"), bad], "bio")


def test_label_studio_gets_one_list_of_tasks():
    tasks = json.loads(write(FLAT, "labelstudio")[0])
    assert [task["data"] for task in tasks] == [{"text": one["text"]} for one in FLAT]
    ((first,), second, _) = (task["predictions"] for task in tasks)
    assert (first["score"], [one["score"] for one in first["result"]]) == (0.8176, [0.9993, 0.8176])  # the least sure
    value = {"start": 0, "end": 3, "text": "叶老桂", "labels": ["name"]}
    names = {"from_name": "label", "to_name": "text", "type": "labels"}
    assert first["result"][0] == {**names, "value": value, "score": 0.9993}
    assert second == [{"model_version": "my model", "score": 1.0, "result": []}]
    assert json.loads(write([], "labelstudio")[0]) == []
    file = io.StringIO()
    with pytest.raises(KeyboardInterrupt), PredictionWriter(file, "labelstudio") as writer:
        writer.write(FLAT, ["in:1", "in:2", "in:3"])
        raise KeyboardInterrupt
    with pytest.raises(ValueError):  # an unfinished list stays open
        json.loads(file.getvalue())
