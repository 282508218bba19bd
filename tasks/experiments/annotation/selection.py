"""The strategies that the simulated loop compares."""

from __future__ import annotations

import random
from collections.abc import Callable

from tasks.ner.examples import Entity, Example
from tasks.ner.prediction.selection import rank, uncertainty

# Gives for each of some texts its candidates, as :func:`tasks.ner.prediction.selection.uncertainty` takes them.
Find = Callable[[list[str]], list[list[Entity]]]


def total_entropy(texts: list[str], find: Find) -> list[float]:
    """The measure of ``paddle-rope select``."""
    return [uncertainty(candidates) for candidates in find(texts)]


def most_doubtful_span(texts: list[str], find: Find) -> list[float]:
    """The entropy of one span of a text, however many others there are: long texts are not preferred."""
    return [max((uncertainty([one]) for one in candidates), default=0.0) for candidates in find(texts)]


def length(texts: list[str], find: Find) -> list[float]:
    """Characters: what of the gain is length alone."""
    return [float(len(text)) for text in texts]


MEASURES = {"uncertain": total_entropy, "doubtful_span": most_doubtful_span, "longest": length}
STRATEGIES = ("random", *MEASURES)


def grow(examples: list[Example], labeled: list[int], total: int, strategy: str, seed: int, find: Find) -> list[int]:
    """Choose more texts to label.

    Args:
        examples: all of them.
        labeled: indices of those that are labeled; without any the first ones are drawn at random.
        total: how many are to be labeled after this.
        strategy: one of :data:`STRATEGIES`.
        seed: of what is drawn at random.
        find: of the model of the round before.

    Returns:
        The indices of ``labeled``, and after them the new ones.
    """
    rest = sorted(set(range(len(examples))) - set(labeled))
    if strategy == "random" or not labeled:
        chosen = random.Random(f"{seed} {len(labeled)}").sample(range(len(rest)), total - len(labeled))
    else:
        texts, known = ([examples[index].text for index in some] for some in (rest, labeled))
        chosen = rank(texts, MEASURES[strategy](texts, find), total - len(labeled), known)
    return [*labeled, *(rest[index] for index in chosen)]
