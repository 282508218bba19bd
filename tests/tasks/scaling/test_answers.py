"""From records to records: keys that stay, texts that no model can read."""

import json
import math

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.scaling.answers import answers, keys_of, texts_of
from tasks.scaling.formats import as_json


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
    keys = keys_of(task, column)
    assert list(answers(Predictor(), keys, [(record, texts_of(record, "f:1", keys))])) == [answer]


def test_pairs_and_triples_are_answered_in_order():
    keys = keys_of("matching", "text")
    items = [({}, texts) for texts in (("a", "a"), ("x", "y", "x"), ("b", "b", "a"), ("a", "b"))]
    assert [answer["label"] for answer in answers(Predictor(), keys, items)] == [1, "C", "B", 0]


@pytest.mark.parametrize(
    "task, record, message",
    [
        ("ner", {}, 'no "text"'),
        ("ner", {"text": None}, '"text" is None'),
        ("ner", {"text": math.nan}, '"text" is nan'),
        ("ner", {"text": "a\0b"}, '"text" .*NUL at character 1'),
        ("ner", {"text": "\ud800"}, '"text" .*surrogate'),
        ("matching", {"sentence1": "a", "sentence2": " "}, '"sentence2" is empty'),
    ],
)
def test_texts_that_no_model_reads_are_refused(task, record, message):
    with pytest.raises(InputError, match=f"^f:1: .*{message}"):
        texts_of(record, "f:1", keys_of(task, "text"))


def test_every_record_can_be_written():
    assert as_json({"a": "好"}) == '{"a": "好"}\n'
    assert json.loads(as_json({"a": "\ud800好"}).encode("utf-8")) == {"a": "\ud800好"}
    assert json.loads(as_json({"a": b"x\xff", "b": {1}})) == {"a": "x\\xff", "b": "{1}"}
