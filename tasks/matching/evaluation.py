"""Scores of a predictor on labeled pairs or triples. Without paddle, unless the predictor needs it."""

from __future__ import annotations

from typing import Any

from tasks.common.errors import visible
from tasks.common.scores import scores_line
from tasks.matching.batching import MatchingDataset
from tasks.matching.data import read_labeled
from tasks.matching.examples import PAIRS, Example, task_of
from tasks.matching.metrics import SCORES, best_threshold, matching_scores
from tasks.matching.prediction import MatchingPredictor, score_dataset
from tasks.matching.report import data_report

__all__ = ["evaluate_model", "evaluate_predictor", "read_labeled", "scores_in_words"]


def evaluate_predictor(predictor: MatchingPredictor, examples: list[Example], title: str) -> dict[str, Any]:
    """Score a predictor on examples, print the scores and return them."""
    dataset = MatchingDataset(examples, predictor.tokenizer, predictor.model.config, predictor.max_tokens)
    print(data_report(title, dataset, predictor.max_tokens))
    scores, _ = evaluate_model(predictor.model, dataset, predictor.batch_size)
    print(f"{visible(title)}: {scores_in_words(scores)}")
    return scores


def scores_in_words(scores: dict[str, Any]) -> str:
    """Scores, and the threshold of a bi-encoder, in one line."""
    threshold = f"  threshold {scores['threshold']:.4f}" if "threshold" in scores else ""
    return scores_line(scores, SCORES) + threshold


def evaluate_model(model, dataset, batch_size, chooses_threshold=False):
    """Scores of ``model`` on a :class:`MatchingDataset`, and its outputs ``[examples, candidates]``.

    With ``chooses_threshold`` a bi-encoder of 0/1 pairs takes the threshold that is best for these data.
    """
    config = model.config
    outputs = score_dataset(model, dataset, batch_size)
    labels = [example.label for example in dataset.examples]
    task = task_of(dataset.examples)
    if chooses_threshold and config.task == PAIRS and not config.is_cross_encoder:
        config.threshold = best_threshold(labels, outputs[:, 0])
    scores = matching_scores(task, labels, outputs, config.threshold)
    if task == PAIRS and config.threshold is not None:
        scores["threshold"] = config.threshold
    return scores, outputs
