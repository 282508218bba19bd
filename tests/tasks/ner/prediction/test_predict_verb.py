"""paddle-rope predict: streams, pages, whole files, mistakes; and the formats of predictions, which are read back."""

import io
import json
import os
import re

import pytest

from paddle_rope.tasks.common.texts.streams import FileStream
from paddle_rope.tasks.ner.arguments import probability
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import Entity, as_record
from paddle_rope.tasks.ner.prediction.output_formats import FORMATS, written
from tests.tasks.ner.conftest import error_of, spans_of


def test_the_page_holds_all_texts_and_entities(predict, predictor, corpus, dev_texts, tmp_path):
    data = tmp_path / os.fsdecode(b"x\xff.txt")  # a name need not be UTF-8
    data.write_bytes(corpus.dev.read_bytes())
    predict(data, options=["--html", tmp_path / "page.html", "--html_language", "zh"])
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in content and "概率" in content  # the model has temperatures
    records = predictor(dev_texts)
    assert content.count("<section") == len(records)
    whole = len(re.findall(r'<mark class="t\d+( goes-on-right)?"', content))  # of an entity in pieces the first
    assert whole == sum(map(len, spans_of(records)))


def test_a_page_is_missed_with_a_message_where_the_reader_leaves_early(refused, trained, corpus, monkeypatch):
    def reader_left(*arguments):
        raise SystemExit(0)

    monkeypatch.setattr("paddle_rope.tasks.ner.prediction.predictor.written", reader_left)
    words = [trained.model, "--input", corpus.dev, "--html", "page.html", "--device", "cpu"]
    assert refused("predict", *words).startswith("page.html: not written")


def test_whole_files_are_documents_with_their_lines(predict, dev_texts, write, tmp_path):
    documents = ["\n".join(dev_texts[:12]) + "\n", "\n".join(dev_texts[12:20])]
    first, second = (write(document, f"{number}.txt") for number, document in enumerate(documents))
    records = predict(first, options=["--input", second, "--whole_files", "--html", tmp_path / "page"])
    assert [record["text"] for record in records] == documents and all(record["entities"] for record in records)
    page = (tmp_path / "page").read_text(encoding="utf-8")
    assert page.count("<p ") == 20 and 'id="text2"' in page
    contents = {"a.txt": "甲\n\n乙\r\n", "b.txt": '{"text": 1}'}  # one text, whatever it holds
    paths = [write(content, name) for name, content in contents.items()]
    assert list(FileStream(paths)) == [[(contents[path.name], str(path))] for path in paths]
    assert "c.txt:1: " in error_of(list, FileStream([write("", "c.txt")]))


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
    return "".join(written(((one, f"in:{number}") for number, one in enumerate(records, 1)), format, "my model"))


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "labelstudio"])
@pytest.mark.parametrize("records, of_bio", [
    (FLAT, [[0, 1], [], [0]]),
    ([NESTED], [[0, 3]]),  # the highest scores
    ([EQUAL], [[0, 2]]),  # the earlier of those that score the same
])  # fmt: skip
def test_predictions_read_back_the_same_but_for_overlaps_in_bio(tmp_path, capsys, format, records, of_bio):
    content = write(records, format)
    if format == "jsonl":
        assert [json.loads(line) for line in content.split("\n")[:-1]] == records
    (tmp_path / "written").write_text(content, encoding="utf-8", newline="")
    read = read_examples(tmp_path / "written")
    assert [example.text for example in read] == [one["text"] for one in records]
    for example, one, kept in zip(read, records, of_bio):
        entities = [one["entities"][index] for index in kept] if format == "bio" else one["entities"]
        expected = [(entity["start"], entity["end"], entity["type"]) for entity in entities]
        assert [entity[:3] for entity in example.entities] == sorted(expected)
    left_out = sum(len(one["entities"]) - len(kept) for one, kept in zip(records, of_bio)) if format == "bio" else 0
    assert (f"note: {left_out} nested" in capsys.readouterr().err) == (left_out > 0)
    lines = write([record(""), record("甲")], format).split("\n")  # an empty text keeps its line
    assert (lines[0] == "" if format == "bio" else json.loads(lines[0])["text"] == "") and "甲" in lines[1]


@pytest.mark.parametrize("bad", [record("一\n二"), record("一", (0, 1, "a b", 1.0))])
def test_bio_refuses_what_a_line_cannot_hold_and_names_the_place(bad):
    assert error_of(write, [record("甲"), bad], "bio").startswith("in:2: ")


def test_label_studio_gets_one_list_of_tasks():
    tasks = json.loads(write(FLAT, "labelstudio"))
    assert [task["data"] for task in tasks] == [{"text": one["text"]} for one in FLAT]
    ((first,), second, _) = (task["predictions"] for task in tasks)
    assert (first["score"], [one["score"] for one in first["result"]]) == (0.8176, [0.9993, 0.8176])  # the least sure
    value = {"start": 0, "end": 3, "text": "叶老桂", "labels": ["name"]}
    names = {"from_name": "label", "to_name": "text", "type": "labels"}
    assert first["result"][0] == {**names, "value": value, "score": 0.9993}
    assert second == [{"model_version": "my model", "result": []}]  # how sure it is of nothing is not known
    assert json.loads(write([], "labelstudio")) == []

    def interrupted():
        yield from ((one, "in:1") for one in FLAT)
        raise KeyboardInterrupt

    file = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        file.writelines(written(interrupted(), "labelstudio", "my model"))
    with pytest.raises(ValueError):  # an unfinished list stays open
        json.loads(file.getvalue())
