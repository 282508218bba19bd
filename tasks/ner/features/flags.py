"""Features that a token has or not: which spans of which classes it begins, is inside of, or ends."""

import numpy as np

from tasks.ner.features.chinese_words import TAG_CLASSES, tag_class

PLACES = 3  # begin, inside, end
LENGTHS = 3  # 2, 3, 4 or more characters
DICTIONARY_CLASSES = len(TAG_CLASSES) * LENGTHS


def span_flags(spans, classes, offsets):
    """Flags of tokens from spans of characters.

    A token begins a span if its first character does, ends one if its last character does, and is inside if the span
    extends to both sides of it.

    Args:
        spans: list of (start, end, class), half-open; a span of one character begins and ends with it.
        classes: number of classes.
        offsets: half-open characters of each token; empty for special tokens, which have no flags.

    Returns:
        uint8 0/1 ``[tokens, classes * PLACES]``.
    """
    starts, ends = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
    flags = np.zeros([len(offsets), classes, PLACES], dtype=np.uint8)
    rows = np.flatnonzero(ends > starts)
    if not (spans and len(rows)):
        return flags.reshape(len(offsets), -1)
    first, end, kind = np.array(spans, dtype=np.int64).T
    size = max(int(end.max()), int(ends.max())) + 1
    by_character = np.zeros([size, classes, PLACES], dtype=np.uint8)
    by_character[first, kind, 0] = 1
    by_character[end - 1, kind, 2] = 1
    # spans that begin before a character and end behind it: a difference at either end, summed up
    steps = np.zeros([size, classes], dtype=np.int32)
    has_inside = end - first > 2
    np.add.at(steps, (first[has_inside] + 1, kind[has_inside]), 1)
    np.add.at(steps, (end[has_inside] - 1, kind[has_inside]), -1)
    by_character[:, :, 1] = np.cumsum(steps, axis=0) > 0
    first_character, last_character = by_character[starts[rows]], by_character[ends[rows] - 1]
    flags[rows, :, 0] = first_character[:, :, 0]
    flags[rows, :, 1] = first_character[:, :, 1] & last_character[:, :, 1]
    flags[rows, :, 2] = last_character[:, :, 2]
    return flags.reshape(len(offsets), -1)


def dictionary_spans(analysis):
    """The dictionary words of a text as spans, a class for each part of speech and length (2, 3, 4 or more)."""
    return [(start, end, tag_class(tag) * LENGTHS + min(end - start, 4) - 2) for start, end, tag in analysis.dictionary]
