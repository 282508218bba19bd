"""Precision, recall and F1 of entities, and precision-recall curves."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from tasks.common.reports.tables import f1_row
from tasks.ner.examples import Entity, Example, spans_of


def entity_scores(examples: list[Example], found: list[list[Entity]], types: Iterable[str]) -> dict:
    """Corpus micro scores over exact (start, end, type) of what is found in each of the examples: counts are summed
    over all texts before dividing. A quotient 0/0 counts as 0. dict with ``precision``, ``recall``, ``f1``, ``support``
    (gold entities), ``predicted``, ``correct``, and ``per_type`` with the same for each of ``types``."""
    counts = counts_by(examples, found, lambda _: lambda span: span[2])
    scores = f1_row(*map(sum, zip((0, 0, 0), *counts.values())))
    scores["per_type"] = {kind: f1_row(*counts[kind]) for kind in types}
    return scores


def counts_by(
    examples: list[Example], found: list[list[Entity]], group_of: Callable[[Example], Callable[[tuple], str]]
) -> dict[str, list[int]]:
    """Numbers of gold, predicted and correct entities of each group, 0 of others; ``group_of`` an example gives the
    group of (start, end, type)."""
    counts: dict = defaultdict(lambda: [0, 0, 0])
    for example, entities in zip(examples, found):
        gold, predicted, group = example.spans, spans_of(entities), group_of(example)
        for column, spans in enumerate((gold, predicted, gold & predicted)):
            for span in spans:
                counts[group(span)][column] += 1
    return counts


def scored_by_type(
    examples: list[Example], found: list[list[Entity]], types: Iterable[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each of the types of what is found, the scores, float64, and whether each is right, bool."""
    scored: dict = {kind: ([], []) for kind in types}
    for gold, entities in zip((example.spans for example in examples), found):
        for entity in entities:
            scores, labels = scored[entity.type]
            scores.append(entity.score)
            labels.append(entity[:3] in gold)
    return {kind: (np.array(scores, float), np.array(labels, bool)) for kind, (scores, labels) in scored.items()}


def precision_recall_curves(
    examples: list[Example], candidates: list[list[Entity]], types: Iterable[str], steps: int = 100
) -> dict[str, dict]:
    """Precision and recall of each type for the thresholds 1 / ``steps``, 2 / ``steps``, ... 1 on the probability
    sigmoid(score); a span is predicted above, not at, the threshold, so that one half is the logit 0. ``candidates``
    are for each text all with a probability above 1 / ``steps``: gold entities that are not among them are always
    missed.

    Returns:
        dict from a type to a dict of float arrays ``[steps]``: ``precision`` (where nothing is predicted, that of the
        highest threshold at which something is, so that a curve does not end in a leap to 1; else 0) and ``recall`` (0
        where nothing is gold), and int arrays ``tp``, ``fp``, ``fn`` and ``tn``, which counts candidates only.
    """
    probability = np.arange(1, steps) / steps
    thresholds = np.append(np.log(probability / (1 - probability)), np.inf)
    support = Counter(kind for example in examples for _, _, kind in example.spans)
    scored = scored_by_type(examples, candidates, types)
    return {kind: _curve(*of_type, support[kind], thresholds) for kind, of_type in scored.items()}


def _curve(scores, labels, support, thresholds):
    # how many are above each of the rising thresholds
    fp, tp = (
        len(some) - np.searchsorted(np.sort(some), thresholds, side="right")
        for some in (scores[~labels], scores[labels])
    )
    predicted = tp + fp  # falls with the threshold
    precision = tp / np.maximum(predicted, 1)
    highest = np.count_nonzero(predicted) - 1
    precision[highest + 1 :] = precision[highest] if highest >= 0 else 0.0
    return {
        "precision": precision,
        "recall": tp / max(support, 1),
        "tp": tp,
        "fp": fp,
        "fn": support - tp,
        "tn": (~labels).sum() - fp,
    }
