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
from typing import NamedTuple

import numpy as np

from tasks.ner.batching import TokenizedText
from tasks.ner.examples import Entity
from tasks.ner.features import TokenFeatures


class Window(NamedTuple):
    """Tokens of a part of a text; offsets count characters of the whole text."""

    text: TokenizedText
    start: float  # characters start .. end of the text; -inf and inf where the text is not cut
    end: float

    @property
    def bounds(self) -> tuple[float, float]:
        """``start`` and ``end``."""
        return self.start, self.end


def cut_text(text: TokenizedText, length: int, overlap: int) -> list[Window]:
    """Windows of at most ``length`` tokens, cut between tokens, each in the special tokens of the text.

    Args:
        text: begins and ends with a special token. Its ``spans`` are left out.
        length: tokens of a window without the special ones.
        overlap: see above; at most ``length`` - 2.

    Returns:
        One window if the text is not longer than ``length``.
    """
    return list(windows_of([text], length, overlap))


def windows_of(parts: Iterable[TokenizedText], length: int, overlap: int) -> Iterator[Window]:
    """The windows of :func:`cut_text` of a text that comes in parts; it holds the tokens of one part and two windows.

    Args:
        parts: one or more, each in special tokens; offsets count characters of the whole text.
        length, overlap: as there.
    """
    step = max(1, length - overlap - 1)
    tokens, first = None, 0  # the next window begins with token number first of the text
    for part in parts:
        if tokens is None:
            tokens = _Tokens(part)
        tokens.append(part)
        while tokens.end > first + length:
            yield tokens.window(first, first + length, is_last=False)
            tokens.drop(first)  # the last window may begin anywhere behind
            first += step
    if tokens is None:
        raise ValueError("a text has at least one part")
    yield tokens.window(max(0, tokens.end - length), tokens.end, is_last=True)


class _Tokens:
    """The tokens of a text that windows may need, without special ones, which are those of a part of it."""

    def __init__(self, part: TokenizedText):
        self._edges = part._replace(features=part.features and part.features.of_tokens([0, -1]))
        self._begin = 0  # number of the first token that is held
        self._ids: list[int] = []
        self._offsets: list[tuple[int, int]] = []
        self._features: list[TokenFeatures] = []  # of one part after another

    @property
    def end(self) -> int:
        """Tokens of the text so far."""
        return self._begin + len(self._ids)

    def append(self, part: TokenizedText) -> None:
        self._ids += part.ids[1:-1]
        self._offsets += part.offsets[1:-1]
        if part.features is not None:
            self._features.append(part.features.of_tokens(slice(1, -1)))

    def drop(self, begin: int) -> None:
        """Forget the tokens before number ``begin``."""
        count = begin - self._begin
        del self._ids[:count], self._offsets[:count]
        if self._features and count:
            self._features = [_joined(self._features).of_tokens(slice(count, None))]
        self._begin = begin

    def window(self, begin: int, end: int, is_last: bool) -> Window:
        part = slice(begin - self._begin, end - self._begin)
        edges = self._edges
        ids = [edges.ids[0], *self._ids[part], edges.ids[-1]]
        offsets = [(0, 0), *self._offsets[part], (0, 0)]
        features = None
        if edges.features is not None:
            self._features = [_joined(self._features)]
            of_window = self._features[0].of_tokens(part)
            features = _joined([edges.features.of_tokens([0]), of_window, edges.features.of_tokens([-1])])
        starts, ends = -np.inf if begin == 0 else offsets[1][0], np.inf if is_last else offsets[-2][1]
        return Window(TokenizedText(ids, offsets, [], features), starts, ends)


def _joined(features: Sequence[TokenFeatures]) -> TokenFeatures:
    """The features of tokens one after another."""
    if len(features) == 1:
        return features[0]
    columns, flags = (np.concatenate(arrays) for arrays in list(zip(*features))[:2])
    return features[0]._replace(columns=columns, packed_flags=flags)


def merge_windows(bounds: Sequence[tuple[float, float]], found: Sequence[Sequence[Entity]]) -> list[Entity]:
    """Entities of a text from those of its windows.

    Args:
        bounds: :attr:`Window.bounds` of the windows of one text, in their order.
        found: for each window its entities, in characters of the text.

    Returns:
        The entities, ordered.
    """
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
