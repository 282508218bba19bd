"""Long texts in overlapping windows, and the rule that merges what is found in them.

Neighboring windows share ``overlap`` + 1 tokens. A span that several windows hold is decided by one of them alone: the
one with the most text around the span, that is with the most characters on the side where it has fewer (the ends of the
text count as no limit), the first among equals. A span at a cut is not trusted, since nobody knows how it goes on.

So each entity of at most ``overlap`` tokens is decided by a window that holds it whole with at least one token on
either side, or the end of the text. (Take the last window that begins before it, or the first: the next one begins at
the entity or behind, so this one reaches at least ``overlap`` + 1 tokens further than the entity begins.)
"""

from typing import NamedTuple

import numpy as np

from tasks.ner.batching import TokenizedText
from tasks.ner.examples import Entity


class Window(NamedTuple):
    """Tokens of a part of a text; offsets count characters of the whole text."""

    text: TokenizedText
    start: float  # characters start .. end of the text; -inf and inf where the text is not cut
    end: float


def cut_text(text: TokenizedText, length: int, overlap: int) -> list[Window]:
    """Windows of at most ``length`` tokens, cut between tokens, each in the special tokens of the text.

    Args:
        text: begins and ends with a special token. Its ``spans`` are left out.
        length: tokens of a window without the special ones.
        overlap: see above; at most ``length`` - 2.

    Returns:
        One window if the text is not longer than ``length``.
    """
    tokens = len(text.ids) - 2
    if tokens <= length:
        return [Window(text, -np.inf, np.inf)]
    windows = []
    for first in [*range(0, tokens - length, max(1, length - overlap - 1)), tokens - length]:
        part = slice(1 + first, 1 + first + length)
        ids = [text.ids[0], *text.ids[part], text.ids[-1]]
        offsets = [(0, 0), *text.offsets[part], (0, 0)]
        start = -np.inf if first == 0 else offsets[1][0]
        end = np.inf if first == tokens - length else offsets[-2][1]
        features = text.features and text.features.of_tokens([0, *range(part.start, part.stop), -1])
        windows.append(Window(TokenizedText(ids, offsets, [], features), start, end))
    return windows


def merge_windows(windows: list[Window], found: list[list[Entity]]) -> list[Entity]:
    """Entities of a text from those of its windows.

    Args:
        windows: of one text, as from :func:`cut_text`.
        found: for each window its entities, in characters of the text.

    Returns:
        The entities, ordered.
    """
    starts, ends = np.array([(window.start, window.end) for window in windows]).T
    entities = []
    for number, of_window in enumerate(found):
        for entity in of_window:
            around = np.minimum(entity.start - starts, ends - entity.end)  # negative where the window does not hold it
            if np.argmax(around) == number and around[number] > 0:
                entities.append(entity)
    return sorted(entities)
