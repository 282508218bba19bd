"""Labeled data for tests, and errors in it."""

import json

import pytest

from tasks.common.errors import InputError
from tasks.ner.examples import Entity, make_example


def example(text, *entities, where="x:1"):
    """An example with entities (start, end, type)."""
    return make_example(text, [Entity(*entity) for entity in entities], where)


def json_line(text, label=None, **other):
    record = {"text": text, **other, **({} if label is None else {"label": label})}
    return json.dumps(record, ensure_ascii=False) + "\n"


def contents(examples):
    """What examples hold whatever format they come from."""
    return [(one.text, one.entities) for one in examples]


def error_of(call, *arguments):
    """The message of the InputError that a call raises: one line."""
    with pytest.raises(InputError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 700
    return message
