"""Long texts read a part at a time: tokens and word features of a text of a million characters are never all in memory.

A text is cut where neither a token nor a word can go on, if there is such a place: between lines, else sentences, else
words that punctuation or a space parts. Some characters on either side of a part are read as well, for words and
entities of the training data that reach into it, so tokens and features equal those of the whole text. Only where
``PART_CHARACTERS`` characters and more follow each other without any such place, the text is cut within; a few words
near the cut may then differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tasks.ner.examples import TokenizedText
from tasks.ner.features import TokenFeatures

PART_CHARACTERS = 8192
# Looked at on either side of a part. The longest word of jieba's dictionary has 16 characters, the longest entity of a
# gazetteer 20.
CONTEXT_CHARACTERS = 64
# What belongs to the character before it: white space goes with the white space before it, a mark with its character.
_JOINED = "\\s\u0300-\u036f\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef"
# Where a text may be cut, behind the match, best first. The third is no character of a word, nor one that jieba or a
# tokenizer may take into one; the last is within words, but not between letters and digits. Where the group holds
# something, it belongs to the match, and there is no cut; it is no condition, so that white space is searched once.
_CUTS = tuple(
    map(
        re.compile,
        (
            f"[\\r\\n]\\s*+(?=([{_JOINED}]?))",
            f'[。！？；!?;…]+[”’」』）)"]*\\s*+(?![{_JOINED}])()',
            f"[^\\w+#&.\u200d]\\s*+(?=([{_JOINED}]?))",
            f"[^A-Za-z0-9\u200d](?=([{_JOINED}]?))",
        ),
    )
)


def part_bounds(text: str, characters: int) -> Iterator[tuple[int, int]]:
    """Half-open characters of the parts of a text, each of at most so many ``characters``, and of at least half as many
    but for the last."""
    start, size = 0, len(text)
    while size - start > characters:
        first, last = start + characters // 2, start + characters
        end = next((end for cut in _CUTS if (end := _last_end(cut, text, first, last))), last)
        yield start, end
        start = end
    yield start, size


def _last_end(cut, text, first, last):
    """The last place from ``first`` to ``last`` behind a match, or 0."""
    # a match that the bound ends may go on behind it, or be followed by what belongs to it
    ends = [match.end() for match in cut.finditer(text, first, last + 1) if not match[1]]
    return next((end for end in reversed(ends) if first <= end <= last), 0)


def read_parts(
    text: str, tokenizer: Any, features: Callable[..., TokenFeatures] | None, characters: int | None = None
) -> Iterator[TokenizedText]:
    """The tokens of each part of a text, of at most so many ``characters``, each between special tokens, with their
    features if a model takes them. Offsets count characters of the whole text."""
    for start, end in part_bounds(text, characters or PART_CHARACTERS):
        ids, offsets, _ = tokenizer.encode(text[start:end])
        around = max(0, start - CONTEXT_CHARACTERS)
        of_tokens = features and features(text[around : end + CONTEXT_CHARACTERS], _moved(offsets, start - around))
        yield TokenizedText(ids, _moved(offsets, start), [], of_tokens)


def _moved(offsets, by):
    """Offsets shifted by so many characters, except for the special tokens at both ends."""
    if not by:
        return offsets
    return [offsets[0], *((start + by, end + by) for start, end in offsets[1:-1]), offsets[-1]]
