"""Labeled data for tests, and errors in it; the log of a run."""

import pytest
from visualdl import LogReader

from tasks.common.errors import InputError
from tasks.ner.examples import Entity, make_example


def example(text, *entities, where="x:1"):
    """An example with entities (start, end, type)."""
    return make_example(text, [Entity(*entity) for entity in entities], where)


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


def log_of(folder):
    """The VisualDL log of a run; there is one file."""
    (path,) = folder.iterdir()
    return LogReader(file_path=str(path))
