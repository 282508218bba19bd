"""Lengths of training texts and entities, and limits that prediction derives from them. Standard library only."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

WINDOW_SHARE, LEAST_TEXTS, SHARE_OF_FEW = 0.01, 10, 0.1  # of the training texts that reach the length of a window
LONGEST_FACTOR = 1.25  # by which the longest training text may exceed a window, which then is as long
ENTITY_FACTOR, LEAST_ENTITY_BOUND = 2, 32  # of found spans: times the longest training entity, and tokens


class TrainingLengths(NamedTuple):
    """Lengths in tokens, without special ones; options of a ``NerConfig``."""

    window_tokens: int  # a length that training covered well
    longest_text: int
    longest_entity: int


def training_lengths(texts: Sequence[Any]) -> TrainingLengths:
    """The lengths of training texts: at least one ``TokenizedText``, as training sees them.

    The window is the longest length that at least one in a hundred texts reaches, and at least ten texts (with fewer
    than a hundred texts, a tenth of them); or the longest of all, if it is at most a quarter longer. So training saw
    every position in the window that often, except in that quarter.
    """
    lengths = sorted((text.size for text in texts), reverse=True)
    reached_by = max(WINDOW_SHARE * len(lengths), min(LEAST_TEXTS, SHARE_OF_FEW * len(lengths)))
    window, longest = lengths[math.ceil(reached_by) - 1], lengths[0]
    window = max(1, longest if longest <= LONGEST_FACTOR * window else window)
    entities = [last - first + 1 for text in texts for _, first, last, _ in text.spans]
    return TrainingLengths(window, max(1, longest), max([1, *entities]))


def entity_bound(longest_entity: int | None) -> int | None:
    """Maximum length of found spans, in tokens: twice the longest training entity, at least 32; None, for any length,
    if that is not known."""
    return None if longest_entity is None else max(ENTITY_FACTOR * longest_entity, LEAST_ENTITY_BOUND)


class WindowSettings(NamedTuple):
    """How texts are read in windows."""

    max_tokens: int
    overlap: int
    max_entity_tokens: int | None

    @property
    def windows(self) -> str:
        """How longer texts are read, in words."""
        return f"read in windows of {self.max_tokens} tokens, {self.overlap + 1} of them shared with the next"


def window_settings(
    config: Any, max_tokens: int | None = None, overlap: int | None = None, max_entity_tokens: int | None = None
) -> WindowSettings:
    """How a model with this configuration reads texts, unless options say otherwise (``max_entity_tokens`` 0: no
    bound). The overlap is the longest training entity, at least a quarter of a window and at most half of one."""
    max_tokens = max_tokens or config.window_tokens or config.max_characters
    if overlap is None:
        overlap = max(max_tokens // 4, min(config.longest_entity or 0, max_tokens // 2))
    if max_entity_tokens is None:
        max_entity_tokens = entity_bound(config.longest_entity)
    return WindowSettings(max_tokens, overlap, max_entity_tokens or None)
