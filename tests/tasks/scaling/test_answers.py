"""From records to records: keys that stay, texts that no model can read."""

import json
import math

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.scaling.answers import Answers, keys_of, texts_of
from tasks.scaling.formats import as_json


def find(texts):
    return [{"text": text, "entities": [len(text)]} for text in texts]


def answers(records, text_column="text"):
    keys = keys_of("ner", text_column)
    return list(Answers("ner", find, keys)([(record, texts_of(record, "f:1", keys)) for record in records]))


def test_other_keys_stay():
    assert answers([{"id": 7, "text": "好", "url": None}]) == [{"id": 7, "url": None, "text": "好", "entities": [1]}]


def test_text_of_another_column_becomes_the_text_and_no_key_is_lost():
    record = {"content": "好", "text": "old", "entities": 1, "input_entities": 2}
    (found,) = answers([record], "content")
    assert found == {
        **{"text": "好", "entities": [1], "input_text": "old"},
        **{"input_input_entities": 1, "input_entities": 2},
    }


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, 'there is no "text"'),
        ({"text": None}, '"text" is None, not a string'),
        ({"text": math.nan}, '"text" is nan, not a string'),
        ({"text": "a\0b"}, '"text" holds a NUL at character 1'),
        ({"text": "\ud800"}, '"text" holds half of a surrogate pair'),
    ],
)
def test_texts_that_no_model_reads_are_refused(record, message):
    with pytest.raises(InputError, match=f"^f:1: {message}"):
        texts_of(record, "f:1", keys_of("ner", "text"))


class Matching:
    threshold = 0.5

    def score(self, pairs):
        return np.array([float(a == b) for a, b in pairs], dtype=np.float32)

    def score_triples(self, triples):
        return np.array([[float(a == b), float(a == c)] for a, b, c in triples], dtype=np.float32)


def test_pairs_and_triples_are_scored():
    keys = keys_of("matching", "text")
    records = [
        {"sentence1": "a", "sentence2": "a", "label": "0"},
        {"A": "x", "B": "y", "C": "x", "id": 1},
        {"sentence1": "a", "sentence2": "b"},
    ]
    found = list(Answers("matching", Matching(), keys)([(record, texts_of(record, "f:1", keys)) for record in records]))
    assert found == [
        {"sentence1": "a", "sentence2": "a", "score": 1.0, "label": 1, "input_label": "0"},
        {"A": "x", "B": "y", "C": "x", "scores": [0.0, 1.0], "label": "C", "id": 1},
        {"sentence1": "a", "sentence2": "b", "score": 0.0, "label": 0},
    ]
    with pytest.raises(InputError, match='"sentence2" is empty'):
        texts_of({"sentence1": "a", "sentence2": " "}, "f:1", keys)


def test_every_record_can_be_written():
    assert as_json({"a": "好"}) == '{"a": "好"}\n'
    assert json.loads(as_json({"a": "\ud800好"}).encode("utf-8")) == {"a": "\ud800好"}
    assert json.loads(as_json({"a": b"x\xff", "b": {1}})) == {"a": "x\\xff", "b": "{1}"}
