"""Scores against labels: accuracy, F1 of the positive class, Spearman correlation; the threshold between 0 and 1."""

import numpy as np

from tasks.common.scores import f1_row
from tasks.matching.examples import PAIRS, TRIPLES

SCORES = ("accuracy", "f1", "spearman")


def choosing_score(task, is_cross_encoder):
    """The score of dev by which the epoch is chosen: accuracy where the model itself says yes or no (a cross-encoder
    on 0/1, and triples), Spearman correlation where it only says more or less (a bi-encoder, and grades)."""
    return "accuracy" if task == TRIPLES or (task == PAIRS and is_cross_encoder) else "spearman"


def matching_scores(task, labels, scores, threshold=None):
    """Accuracy, F1 and correlation of scored examples.

    Args:
        task: one of :data:`tasks.matching.examples.TASKS`, that of the labels.
        labels: ``[examples]``, as of :class:`tasks.matching.examples.Example`.
        scores: ``[examples, candidates]``.
        threshold: of pairs: the score from which the model says 1; None if it does not say so.

    Returns:
        dict: of triples ``accuracy``; of pairs and grades ``spearman`` (0 where all scores are equal), and of pairs
        with a threshold ``accuracy``, and ``precision``, ``recall`` and ``f1`` of label 1.
    """
    labels, scores = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if task == TRIPLES:
        return {"accuracy": float(np.mean((scores[:, 0] > scores[:, 1]) == (labels == 1)))}
    scores = scores[:, 0]
    result = {}
    if task == PAIRS and threshold is not None:
        found, gold = scores >= threshold, labels == 1
        row = f1_row(*(int(chosen.sum()) for chosen in (gold, found, found & gold)))
        result = {"accuracy": float(np.mean(found == gold)), **{key: row[key] for key in ("f1", "precision", "recall")}}
    is_constant = np.ptp(scores) == 0 or np.ptp(labels) == 0
    result["spearman"] = 0.0 if is_constant else float(np.corrcoef(_ranks(scores), _ranks(labels))[0, 1])
    return result


def _ranks(values):
    """The rank of each value; equal values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[group]


def best_threshold(labels, scores):
    """The threshold with the highest accuracy; the highest threshold of several.

    Args:
        labels: ``[examples]``, 0 or 1.
        scores: ``[examples]``.

    Returns:
        float, halfway between two scores, the lowest of all, or just above the highest of all.
    """
    order = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
    labels, scores = np.asarray(labels)[order] == 1, np.asarray(scores, dtype=np.float64)[order]
    found = np.arange(len(scores) + 1)  # how many of the highest are taken for 1
    positives = np.concatenate([[0], np.cumsum(labels)])
    correct = positives + (len(labels) - found) - (positives[-1] - positives)
    is_cut = np.concatenate([[True], scores[:-1] > scores[1:], [True]])  # equal scores are on one side
    best = int(np.argmax(np.where(is_cut, correct, -1)))
    if best == 0:
        return float(np.nextafter(scores[0], np.inf))
    return float(scores[-1] if best == len(scores) else (scores[best - 1] + scores[best]) / 2)
