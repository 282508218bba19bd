"""Which unlabeled texts are worth labeling next: the texts whose entities a model is least certain of.

GlobalPointer decides on each typed span by itself, so to the model the labels of a text are independent binary
variables, and their joint entropy is the sum of their entropies: the model's uncertainty about the text, in nats. This
is the total entropy that Settles and Craven (2008, "An analysis of active learning strategies for sequence labeling
tasks", https://aclanthology.org/D08-1112) found to be among the best measures for sequence labeling, with spans in the
place of tokens. It is not divided by the length of the text, as they advise against it: a text with several doubtful
entities teaches more than a text with one.

Texts that nearly repeat another one teach nothing, so of each group of such texts only the most uncertain is taken.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

from paddle_rope.tasks.ner.calibration import LOWEST_THRESHOLD
from paddle_rope.tasks.ner.examples import Entity

# Texts are near duplicates if their sets of character pairs have at least this Jaccard similarity (Broder 1997).
NEAR_DUPLICATE = 0.8
MOST_COMPARED = 100  # texts that a text is compared with, so that the work is linear


def select(
    predictor: Any, chunks: Iterable[list[tuple[str, str]]], count: int, known: Sequence[str]
) -> tuple[list[tuple[dict, str]], int]:
    """The texts to label next: pairs of what a :class:`~paddle_rope.tasks.ner.prediction.predictor.NerPredictor` finds
    in a text, with its ``uncertainty``, and the text's place; and the number of texts in ``chunks`` of (text, place).
    Other arguments as in :func:`rank`."""
    seen: list[tuple[str, str]] = []
    uncertainties: list[float] = []
    for chunk in chunks:
        seen += chunk
        uncertainties.extend(map(uncertainty, predictor.find(*zip(*chunk), LOWEST_THRESHOLD)))
    chosen = rank([text for text, _ in seen], uncertainties, count, known)
    texts, where = ([seen[index][part] for index in chosen] for part in (0, 1))
    records = predictor(texts, where)
    for record, index in zip(records, chosen):
        record["uncertainty"] = round(uncertainties[index], 4)
    return list(zip(records, where)), len(seen)


def uncertainty(candidates: Iterable[Entity]) -> float:
    """Entropy, in nats, of a model's predictions for a text; 0 if it is sure. ``candidates`` are all spans that score
    above ``LOWEST_THRESHOLD``, including overlapping ones."""
    shares = (p for entity in candidates for p in (entity.probability, 1 - entity.probability))
    return -math.fsum(p * math.log(p) for p in shares if p > 0)


def rank(texts: list[str], uncertainties: list[float], count: int, known: Sequence[str] = ()) -> list[int]:
    """The texts to label next: indices of at most ``count`` texts, the most uncertain first, the first one among
    equals. Empty texts and near duplicates of ``known`` texts, which are labeled, or of texts taken before, are left
    out. Near duplicates share one of their rarest pairs (the prefix filter of Chaudhuri, Ganti and Kaushik 2006, "A
    primitive operator for similarity joins in data cleaning"); of the texts that share some, at most ``MOST_COMPARED``
    are compared."""
    frequencies = Counter(pair for text in (*known, *texts) for pair in _pairs(text))
    kept: set[frozenset[str]] = set()  # the pairs of each kept text
    holders: dict[str, deque[frozenset[str]]] = defaultdict(lambda: deque(maxlen=MOST_COMPARED))  # of a rare pair

    def keep(text: str) -> bool:
        """Keep a text unless it is a near duplicate of a kept one; returns whether it is kept."""
        pairs = _pairs(text)
        rarest = sorted(pairs, key=lambda pair: (frequencies[pair], pair))
        del rarest[len(pairs) - math.ceil(NEAR_DUPLICATE * len(pairs)) + 1 :]
        sharing = Counter(other for pair in rarest for other in holders[pair]).most_common(MOST_COMPARED)
        if pairs in kept or any(_are_near(pairs, other) for other, _ in sharing):
            return False
        kept.add(pairs)
        for pair in rarest:
            holders[pair].append(pairs)
        return True

    for text in known:
        keep(text)
    chosen: list[int] = []
    for index in sorted(range(len(texts)), key=lambda index: (-uncertainties[index], index)):
        if len(chosen) == count:
            break
        if texts[index].strip() and keep(texts[index]):
            chosen.append(index)
    return chosen


def _are_near(pairs, other):
    both = len(pairs & other)
    return both >= NEAR_DUPLICATE * (len(pairs) + len(other) - both)


def _pairs(text):
    """The distinct pairs of neighboring characters, ignoring white space; the text itself if there are none."""
    text = "".join(text.split())
    return frozenset(text[index : index + 2] for index in range(len(text) - 1)) or frozenset([text])
