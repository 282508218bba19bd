"""Long texts in overlapping windows, and the rule that merges what is found in them.

Neighboring windows share ``overlap`` + 1 tokens. A span that several windows hold is decided by one of them alone: the
one with the most text around the span, that is with the most characters on the side where it has fewer (the ends of the
text count as no limit), the first among equals. A span at a cut is not trusted, since nobody knows how it continues.

So each entity of at most ``overlap`` tokens is decided by a window that holds it whole with at least one token on
either side, or the end of the text. (Take the last window that begins before it, or the first: the next one begins at
the entity or behind, so this one reaches at least ``overlap`` + 1 tokens further than the entity begins.)
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from tasks.ner.examples import Entity, TokenizedText

Bounds = tuple[float, float]


class Window(NamedTuple):
    """Tokens of a part of a text; offsets count characters of the whole text."""

    text: TokenizedText
    start: float  # characters start .. end of the text; -inf and inf where the text is not cut
    end: float
    characters: int  # how many it adds to the windows before it

    @property
    def bounds(self) -> Bounds:
        """``start`` and ``end``."""
        return self.start, self.end


def windows_of(parts: Iterable[TokenizedText], length: int, overlap: int) -> Iterator[Window]:
    """Windows of at most ``length`` tokens, cut between tokens, each between special tokens; one of a short text.

    Args:
        parts: the text, whole or in parts, which are read as windows need them. Each begins and ends with a special
            token, which does not count, and its offsets count characters of the whole text.
        overlap: see above; at most ``length`` - 2.
    """
    step = max(1, length - overlap - 1)
    held: TokenizedText | None = None  # the tokens that windows may still need
    last = first = 0  # of those, where the last window began, and where the next one begins
    reached = 0  # characters in windows so far
    for part in parts:
        held = held.part(last, held.size).joined(part) if held else part
        first, last = first - last, 0
        while held.size > first + length:
            window = _window(held.part(first, first + length), reached, begins=first == 0, ends=False)
            yield window
            reached = window.text.offsets[-2][1]
            last, first = first, first + step
    assert held is not None, "a text has at least one part"
    first = max(0, held.size - length)
    yield _window(held.part(first, held.size), reached, begins=first == 0, ends=True)


def _window(text, reached, begins, ends):
    """``begins`` and ``ends`` say whether it begins and ends as its text does."""
    start, end = -inf if begins else text.offsets[1][0], text.offsets[-2][1]
    return Window(text, start, inf if ends else end, end - reached)


def merge_windows(bounds: Sequence[Bounds], found: Sequence[Sequence[Entity]]) -> list[Entity]:
    """The entities of a text, ordered, from the entities of each of its windows; ``bounds`` are :attr:`Window.bounds`
    of the windows in their order."""
    starts, ends = zip(*bounds)
    entities = []
    for number, of_window in enumerate(found):
        for entity in of_window:
            # the windows that hold the entity with text on either side
            holding = range(bisect.bisect_right(ends, entity.end), bisect.bisect_left(starts, entity.start))
            around = [min(entity.start - starts[window], ends[window] - entity.end) for window in holding]
            if number in holding and holding[around.index(max(around))] == number:
                entities.append(entity)
    return sorted(entities)
