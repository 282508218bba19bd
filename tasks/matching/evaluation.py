"""Scores of labeled pairs or triples: accuracy, F1 of label 1, Spearman correlation, and the threshold between labels 0
and 1. Without paddle."""

from typing import Any

import numpy as np

from tasks.common.reports.tables import f1_row, scores_line
from tasks.matching.arguments import GRADES, PAIRS, TRIPLES
from tasks.matching.data import task_of

SCORES = ("accuracy", "f1", "spearman")


def scores_in_words(scores: dict[str, Any]) -> str:
    """One line of scores, with the threshold of a bi-encoder."""
    threshold = f"  threshold {scores['threshold']:.4f}" if "threshold" in scores else ""
    return scores_line(scores, SCORES) + threshold


def data_report(name, dataset):
    examples = dataset.examples
    task, labels = task_of(examples), [example.label for example in examples]
    if task == PAIRS:
        what = f"{len(examples)} pairs, {labels.count(1)} of them with label 1"
    elif task == GRADES:
        what = f"{len(examples)} pairs with grades from {min(labels):g} to {max(labels):g}"
    else:
        different = len({example.text for example in examples})
        what = f"{len(examples)} triples with {different} different texts A"
    lengths = [len(sequence.ids) for sequence in dataset.sequences]
    cut = f", {dataset.num_cut} of them cut to {dataset.max_tokens}" if dataset.num_cut else ""
    return f"{name}: {what}; {len(lengths)} sequences, {np.mean(lengths):.0f} tokens on average{cut}"


def choosing_score(config):
    """The dev score that chooses the epoch: accuracy if the model itself decides (a cross-encoder of 0/1, and triples),
    Spearman correlation if it only ranks (a bi-encoder, and grades)."""
    decides = config.task == TRIPLES or (config.task == PAIRS and config.is_cross_encoder)
    return "accuracy" if decides else "spearman"


def matching_scores(task, labels, scores, threshold=None):
    """Scores of examples with ``labels`` and ``scores`` ``[examples, candidates]``: of triples ``accuracy``; of pairs
    and grades ``spearman`` (0 where all scores are equal); and of pairs with a ``threshold``, from which the label is
    1, ``accuracy``, and ``precision``, ``recall`` and ``f1`` of label 1."""
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
    """The threshold of scores with the highest accuracy, the highest of several: halfway between two scores, the lowest
    of all, or just above the highest of all. ``labels`` are 0 or 1."""
    labels, scores = np.asarray(labels) == 1, np.asarray(scores, dtype=np.float64)
    falling = np.unique(scores)[::-1]
    cuts = np.array([np.nextafter(falling[0], np.inf), *(falling[:-1] + falling[1:]) / 2, falling[-1]])
    positives, negatives = np.sort(scores[labels]), np.sort(scores[~labels])
    correct = np.searchsorted(negatives, cuts) + len(positives) - np.searchsorted(positives, cuts)
    return float(cuts[np.argmax(correct)])
