"""Label Studio: which annotation counts, where the text is, and offsets of texts with emoji."""

import json
from xml.etree import ElementTree

import pytest

from tasks.ner.data.reading import Entity, read_examples, read_labeled
from tasks.ner.formats.label_studio import labeling_configuration
from tests.ner.reading import assert_error, spans

TEXT = "王明在青川市。"
EMOJI = "我爱👍🏽𠮷野家！"  # characters 2, 3 and 4 are two units of UTF-16 each


def region(start, end, *labels, text=None, **other):
    value = {"start": start, "end": end, "labels": list(labels)}
    value.update({} if text is None else {"text": text})
    return {"id": "x", "from_name": "ner", "to_name": "text", "type": "labels", "value": value, **other}


def annotation(*regions, **other):
    return {"id": 1, "completed_by": 1, "was_cancelled": False, "result": list(regions), **other}


def task(*annotations, text=TEXT, **other):
    return {"id": 1, "data": {"text": text}, "annotations": list(annotations), **other}


@pytest.fixture
def write_tasks(write):
    return lambda *tasks: write(json.dumps(tasks, ensure_ascii=False, indent=1))


def test_an_export_is_recognized_and_read(write_tasks):
    path = write_tasks(task(annotation(region(0, 2, "PER", text="王明"), region(3, 6, "LOC", "GPE", text="青川市"))))
    (example,), format = read_labeled(path)
    assert format == "labelstudio" and example.where == f"{path}:2"
    assert example.text == TEXT and spans(example) == [(0, 2, "PER"), (3, 6, "GPE"), (3, 6, "LOC")]


def test_a_submitted_annotation_without_regions_is_a_text_without_entities(write_tasks):
    assert read_examples(write_tasks(task(annotation())))[0].entities == ()


def test_what_is_not_a_submitted_label_is_left_out_and_counted(write_tasks, caplog):
    relation = {"type": "relation", "from_id": "x", "to_id": "y", "direction": "right"}
    choice = {"type": "choices", "from_name": "c", "to_name": "text", "value": {"choices": ["news"]}}
    path = write_tasks(
        task(annotation(region(0, 2, "PER"), relation, relation, choice), drafts=[annotation()]),
        task(annotation(region(0, 2, "PER"), was_cancelled=True)),
        task(drafts=[annotation(region(0, 2, "PER"))]),
    )
    assert [spans(example) for example in read_examples(path)] == [[(0, 2, "PER")]]
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{path}: left out of the Label Studio export: 2 drafts, 2 relations, 1 results that are no labels, "
        "1 skipped annotations, 2 texts without a submitted annotation"
    )


def test_of_several_annotations_the_ground_truth_counts_else_the_one_updated_last(write_tasks, caplog):
    early, late = "2026-01-02T10:00:00Z", "2026-01-02T11:00:00Z"
    first, second = annotation(region(0, 1, "first"), updated_at=late), annotation(region(0, 1, "second"))
    path = write_tasks(
        task(first, {**second, "updated_at": early}),
        task({**first, "updated_at": early}, {**second, "updated_at": late}),
        task({**first, "updated_at": early, "ground_truth": True}, {**second, "updated_at": late}),
        task({**first, "updated_at": late, "was_cancelled": True}, {**second, "updated_at": early}),
    )
    assert [example.entities[0].type for example in read_examples(path)] == ["first", "second", "first", "second"]
    assert "3 further annotations of a text" in caplog.text


@pytest.mark.parametrize("data", [{"text": TEXT, "source": "web"}, {"review": TEXT, "number": 3}])
def test_the_text_is_that_which_the_labels_name_or_the_only_string(write_tasks, data):
    labeled, empty = (task(annotation(*regions), data=data) for regions in ([region(0, 2, "PER")], []))
    assert [example.text for example in read_examples(write_tasks(labeled, empty))] == [TEXT, TEXT]


@pytest.mark.parametrize(
    "data, reason",
    [
        ({"review": TEXT, "source": "web"}, "2 strings ('review', 'source') in the data, and none is called 'text'"),
        ({"image": 3}, "no string in the data, and none is called 'text'; call the text so"),
        ({"text": ""}, "the text is empty; remove the task"),
        ([], '"data" is [], not an object; export the project again'),
    ],
)
def test_data_without_a_clear_text_are_an_error(write_tasks, data, reason):
    assert_error(write_tasks({**task(annotation(region(0, 2, "PER"))), "data": data}), 2, reason)


def test_labels_of_two_texts_of_a_task_are_an_error(write_tasks):
    path = write_tasks(task(annotation(region(0, 2, "PER"), region(0, 1, "PER", to_name="title"))))
    assert_error(path, 1, "labels of several texts of a task (text, title)", "one text a task")


# ---- offsets


@pytest.mark.parametrize(
    "start, end, surface, expected",
    [
        (4, 7, "𠮷野家", (4, 7)),  # code points, as Label Studio counts
        (6, 10, "𠮷野家", (4, 7)),  # units of UTF-16, as older releases counted
        (2, 6, "👍🏽", (2, 4)),
        (10, 11, "！", (7, 8)),  # behind the end of the text in code points
        (4, 7, None, (4, 7)),  # without a surface it is code points
    ],
)
def test_offsets_of_texts_with_emoji(write_tasks, start, end, surface, expected):
    (example,) = read_examples(write_tasks(task(annotation(region(start, end, "t", text=surface)), text=EMOJI)))
    assert example.entities == (Entity(*expected, "t"),)


@pytest.mark.parametrize("surface", ["甲 乙", "甲\\n 乙", "甲乙"])
def test_a_surface_may_differ_in_white_space(write_tasks, surface):
    (example,) = read_examples(write_tasks(task(annotation(region(0, 5, "t", text=surface)), text="甲 \n 乙丙")))
    assert spans(example) == [(0, 5, "t")]


@pytest.mark.parametrize(
    "bad, reason",
    [
        (region(0, 2, "PER", text="青川"), "span [0, 2] holds '王明', but its text is '青川'; correct the offsets"),
        (region(5, 9, "PER", text="青川"), "span [5, 9] is not in the text of 7 characters"),
        (region(5, 9, "PER"), "span [5, 9] is not in the text of 7 characters"),
        (region(0.5, 9.5, "PER"), "the offsets 0.5 and 9.5 are not integers"),
        (region(0, 2), "the labels of a span are [], not a list of types"),
        (region(0, 2, " "), "the entity type ' ' is empty"),
        (region(0, 2, "PER", value=None), '"value" is None, not an object'),
    ],
)
def test_wrong_regions_are_errors_with_the_line_of_their_task(write_tasks, bad, reason):
    path = write_tasks(task(annotation(region(0, 2, "PER"))), task(annotation(bad)))
    line = path.read_text(encoding="utf-8").splitlines().index(" {", 2) + 1
    assert_error(path, line, reason)


@pytest.mark.parametrize(
    "bad, reason",
    [
        ({"annotations": {}}, '"annotations" is {}, not a list of objects'),
        ({"annotations": [{"result": 3}]}, '"result" is 3, not a list of objects'),
        ({"annotations": [{}]}, 'entity {} has no "result"'),
    ],
)
def test_a_task_of_another_shape_is_an_error(write_tasks, bad, reason):
    assert_error(write_tasks({"data": {"text": TEXT}, **bad}), 2, reason)


# ---- JSON-MIN


def minimal(*spans, id=1, text=TEXT, **other):
    record = {"text": text, "id": id, "annotator": 1, "annotation_id": id, "created_at": "2026-01-01", "lead_time": 2.5}
    return {**record, **({"ner": list(spans)} if spans else {}), **other}


def span(start, end, *labels):
    return {"start": start, "end": end, "labels": list(labels)}


def test_json_min_is_recognized_and_read(write_tasks):
    path = write_tasks(minimal(span(0, 2, "PER"), span(3, 6, "LOC"), text=TEXT), minimal(id=2, text=EMOJI))
    examples, format = read_labeled(path)
    assert format == "labelstudio_min"
    assert [(one.text, spans(one)) for one in examples] == [(TEXT, [(0, 2, "PER"), (3, 6, "LOC")]), (EMOJI, [])]


def test_json_min_takes_the_annotation_updated_last_and_leaves_out_what_has_none(write_tasks, caplog):
    path = write_tasks(
        minimal(span(0, 1, "late"), updated_at="2026-02-02"),
        minimal(span(0, 1, "early"), updated_at="2026-02-01"),
        minimal(id=2, annotation_id=None),
    )
    assert read_labeled(path, "labelstudio_min")[0][0].entities == (Entity(0, 1, "late"),)
    assert "1 further annotations of a text, 1 texts without a submitted annotation" in caplog.text


def test_json_min_tells_of_spans_without_labels(write_tasks, caplog):
    unlabeled = {"start": 3, "end": 6, "text": "青川市"}
    path = write_tasks(minimal(unlabeled, span(0, 2, "PER")), minimal({**unlabeled, "choices": ["news"]}, id=2))
    assert [spans(one) for one in read_labeled(path, "labelstudio_min")[0]] == [[(0, 2, "PER")], []]
    assert "2 spans without labels" in caplog.text


def test_json_min_finds_a_text_of_another_name(write_tasks):
    record = minimal(span(0, 2, "PER"))
    record["review"] = record.pop("text")
    assert read_examples(write_tasks(record))[0].text == TEXT
    assert_error(write_tasks({**record, "source": "web"}), 2, "2 strings ('review', 'source')", "call the text so")


# ---- what a project needs


def test_the_labeling_configuration_has_the_types_and_the_names_that_are_written():
    root = ElementTree.fromstring(labeling_configuration(["name", 'a"<&b']))
    labels, text = root
    assert [label.get("value") for label in labels] == ["name", 'a"<&b']
    assert (labels.get("name"), labels.get("toName"), text.get("name"), text.get("value")) == (
        "label", "text", "text", "$text",
    )  # fmt: skip
