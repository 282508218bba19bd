"""Precision, recall and F1 of entities, and precision-recall curves."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from tasks.common.reports.tables import f1_row
from tasks.ner.examples import Entity, Example, spans_of


def entity_scores(examples: list[Example], found: list[list[Entity]], types: Iterable[str]) -> dict:
    """Corpus micro scores over exact (start, end, type) of what is found in each of the examples: counts are summed
    over all texts before dividing. A quotient 0/0 counts as 0. dict with ``precision``, ``recall``, ``f1``, ``support``
    (gold entities), ``predicted``, ``correct``, and ``per_type`` with the same for each of ``types``."""
    gold_count, predicted_count, correct_count = Counter(), Counter(), Counter()
    for gold, predicted in zip((example.spans for example in examples), map(spans_of, found)):
        gold_count.update(kind for _, _, kind in gold)
        predicted_count.update(kind for _, _, kind in predicted)
        correct_count.update(kind for _, _, kind in gold & predicted)
    scores = f1_row(sum(gold_count.values()), sum(predicted_count.values()), sum(correct_count.values()))
    scores["per_type"] = {kind: f1_row(gold_count[kind], predicted_count[kind], correct_count[kind]) for kind in types}
    return scores


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
    scores = {kind: ([], []) for kind in types}  # of what is not gold, of what is
    support = Counter()
    for gold, found in zip((example.spans for example in examples), candidates):
        support.update(kind for _, _, kind in gold)
        for entity in found:
            if entity.type in scores:
                scores[entity.type][entity[:3] in gold].append(entity.score)
    return {kind: _curve(wrong, right, support[kind], thresholds) for kind, (wrong, right) in scores.items()}


def _curve(wrong, right, support, thresholds):
    # how many are above each of the rising thresholds
    fp, tp = (
        len(scores) - np.searchsorted(np.sort(np.asarray(scores, dtype=np.float64)), thresholds, side="right")
        for scores in (wrong, right)
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
        "tn": len(wrong) - fp,
    }
