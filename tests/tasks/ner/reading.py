"""Lines of labeled data, what is read from them, and errors in them."""

import json

import pytest

from tasks.common.errors import InputError
from tasks.ner.data.reading import read_examples


def json_line(text, label=None, **other):
    record = {"text": text, **other}
    if label is not None:
        record["label"] = label
    return json.dumps(record, ensure_ascii=False) + "\n"


def tagged(*sentences):
    """The content of a tagged file; a sentence is written as "甲/B-X 乙/O"."""
    return "\n".join("".join(f"{item.replace('/', ' ')}\n" for item in sentence.split()) for sentence in sentences)


def spans(example):
    return [(entity.start, entity.end, entity.type) for entity in example.entities]


def surfaces(example):
    return [(example.text[entity.start : entity.end], entity.type) for entity in example.entities]


def contents(examples):
    """What examples hold whatever format they come from."""
    return [(one.text, one.entities) for one in examples]


def error_of(call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 700
    return message


def assert_error(path, line, *parts):
    """Reading labeled data fails with path:line and all the parts, the last one being the remedy."""
    message = error_of(read_examples, path)
    assert message.startswith(f"{path}:{line}: ")
    for part in parts:
        assert part in message
