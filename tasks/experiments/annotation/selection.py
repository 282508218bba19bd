"""The strategies that the simulated loop compares."""

from __future__ import annotations

import random
from collections.abc import Callable

from tasks.ner.examples import Entity, Example
from tasks.ner.prediction.selection import rank, uncertainty

Candidates = Callable[[list[str]], list[list[Entity]]]


def _uncertain(pool, known, count, find, draw):
    """As ``paddle-rope select``: total entropy, without near duplicates."""
    texts = [example.text for example in pool]
    return rank(texts, list(map(uncertainty, find(texts))), count, [example.text for example in known])


def _doubtful_span(pool, known, count, find, draw):
    """By the one span of a text that is nearest to the threshold, however many others there are."""
    texts = [example.text for example in pool]
    measure = [max((uncertainty([entity]) for entity in entities), default=0.0) for entities in find(texts)]
    return rank(texts, measure, count, [example.text for example in known])


def _longest(pool, known, count, find, draw):
    """The longest texts: what of the gain is length alone."""
    texts = [example.text for example in pool]
    return rank(texts, list(map(len, texts)), count, [example.text for example in known])


def _at_random(pool, known, count, find, draw):
    return draw.sample(range(len(pool)), count)


STRATEGIES = {"random": _at_random, "uncertain": _uncertain, "doubtful_span": _doubtful_span, "longest": _longest}


def grow(
    examples: list[Example], labeled: list[int], total: int, strategy: str, seed: int, find: Candidates
) -> list[int]:
    """Choose more texts to label.

    Args:
        examples: all of them.
        labeled: indices of those that are labeled; without any the first ones are drawn at random.
        total: how many are to be labeled after this.
        strategy: one of :data:`STRATEGIES`.
        seed: of what is drawn at random.
        find: gives for each of some texts its candidates, as :func:`tasks.ner.prediction.selection.uncertainty` takes
            them.

    Returns:
        The indices of ``labeled``, and after them the new ones.
    """
    draw = random.Random(f"{seed} {len(labeled)}")
    rest = sorted(set(range(len(examples))) - set(labeled))
    choose = STRATEGIES[strategy] if labeled else _at_random
    pool, known = [examples[index] for index in rest], [examples[index] for index in labeled]
    chosen = choose(pool, known, total - len(labeled), find, draw)
    return [*labeled, *(rest[index] for index in chosen)]
