"""Labeled texts that are too long to train on as a whole, in pieces that keep every entity."""

from __future__ import annotations

import numpy as np

from tasks.common.texts.documents import SENTENCE_END
from tasks.ner.examples import TokenizedText

Span = tuple[int, int, int]


def cut_labeled(text: TokenizedText, length: int, characters: str) -> tuple[list[TokenizedText], list[Span]]:
    """Pieces of at most ``length`` tokens, none of which holds a part of an entity that none holds; and the spans of
    the text that are longer than a piece.

    A cut lies in the second half of a piece: behind the last end of a sentence there that is in no entity, else at the
    last place in no entity. Where there is none, as in long chains of overlapping entities, the next piece begins with
    the first entity that the cut breaks; a label stands only where its entity is whole.

    Args:
        text: begins and ends with a special token, which do not count.
        characters: the text itself.
    """
    tokens = text.size
    if tokens <= length:
        return [text], []
    spans = [(first - 1, last) for _, first, last in text.spans]  # half-open, without the special token
    depth = np.zeros(tokens + 1, dtype=np.int64)  # [place], entities that a cut before that token breaks
    for begin, end in spans:
        depth[begin + 1] += 1
        depth[end] -= 1
    is_free = np.cumsum(depth) == 0
    ends = {match.end() for match in SENTENCE_END.finditer(characters)}
    is_end = np.array([False, *(end in ends or characters[end - 1] == "\n" for _, end in text.offsets[1:-1])])
    pieces, kept, begin = [], set(), 0
    while True:
        end = tokens if tokens - begin <= length else _last_place(is_free, is_end, begin, length)
        inside = [number for number, (first, behind) in enumerate(spans) if begin <= first and behind <= end]
        kept.update(inside)
        moved = [(kind, first - begin, last - begin) for kind, first, last in (text.spans[number] for number in inside)]
        pieces.append(text.part(begin, end)._replace(spans=moved))
        if end == tokens:
            return pieces, [span for number, span in enumerate(text.spans) if number not in kept]
        begin = min((first for first, behind in spans if begin < first < end < behind), default=end)


def _last_place(is_free, is_end, begin, length):
    """Where a piece that begins at token ``begin`` ends."""
    places = np.arange(begin + length // 2 + 1, begin + length + 1)
    for fits in (is_free & is_end, is_free):
        fitting = places[fits[places]]
        if len(fitting):
            return int(fitting[-1])
    return begin + length
