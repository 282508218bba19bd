"""The configuration of a classifier."""

import pytest

from tasks.classification.model import ClassificationConfig


@pytest.mark.parametrize(
    "options, message",
    [
        ({"classes": "ab"}, "classes must be a list"),
        ({"classes": [1]}, "classes must be a list"),
        ({"max_characters": 0}, "max_characters must be an integer of 1 to"),
        ({"max_characters": "512"}, "max_characters must be an integer of 1 to"),
        ({"pooling": "max"}, "pooling must be one of first, mean"),
    ],
    ids=str,
)
def test_configuration_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ClassificationConfig(**{"classes": ["a", "b"], **options})
