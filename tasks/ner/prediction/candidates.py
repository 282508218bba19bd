"""The spans that could be entities, from which thresholds and temperatures are chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tasks.common.errors import InputError
from tasks.ner.examples import Entity, without_overlaps
from tasks.ner.spans import of_types

# Spans that score less are not looked at: the loss trains for 0, and of lower ones there are as many as spans.
LOWEST_THRESHOLD = -5.0
MOST_CANDIDATES, LEAST_BOUND = 20, 1000  # a character; so many are never too many
FIRST_TEXTS, TEXTS_AT_ONCE = 16, 256
Text = TypeVar("Text")


def find_candidates(
    find: Callable[[list[Text]], list[list[Entity]]], texts: list[Text], lengths: Sequence[int]
) -> list[list[Entity]]:
    """For each text its entities that score above ``LOWEST_THRESHOLD``.

    Args:
        find: finds them in some of the texts.
        texts: in the form that ``find`` takes.
        lengths: characters of each.

    Raises:
        InputError: there are too many to hold, because the model has not learned to tell spans apart.
    """
    candidates: list[list[Entity]] = []
    while len(candidates) < len(texts):
        begin = len(candidates)
        end = begin + (TEXTS_AT_ONCE if begin else min(FIRST_TEXTS, TEXTS_AT_ONCE))
        candidates += find(texts[begin:end])
        most = MOST_CANDIDATES * sum(lengths[begin:end])
        if sum(map(len, candidates[begin:])) > max(most, LEAST_BOUND):
            raise InputError(
                f"the model scores more than {MOST_CANDIDATES} spans a character above {LOWEST_THRESHOLD}: it does "
                "not tell spans apart yet; train it longer"
            )
    return candidates


def above_thresholds(
    candidates: list[list[Entity]], thresholds: float | Sequence[float], types: Sequence[str], allow_overlap: bool
) -> list[list[Entity]]:
    """The candidates of each text that score above the thresholds, of overlapping ones the best unless they may."""
    bound = dict(zip(types, of_types(thresholds, len(types))))
    found = [[entity for entity in entities if entity.score > bound[entity.type]] for entities in candidates]
    return found if allow_overlap else list(map(without_overlaps, found))
