"""Scores of a model on labeled texts. Without paddle, unless the model needs it."""

import contextlib
from typing import Any, NamedTuple, Optional

from tasks.common.errors import InputError
from tasks.ner.batching import NerDataset
from tasks.ner.examples import Entity, without_overlaps
from tasks.ner.metrics import entity_scores
from tasks.ner.prediction.calibration import LOWEST_THRESHOLD, above_thresholds, find_candidates
from tasks.ner.prediction.finding import find_in_windows
from tasks.ner.reports.error_analysis import error_analysis


class Evaluation(NamedTuple):
    """What a model finds in labeled texts."""

    scores: dict[str, Any]  # as of scores_and_errors
    found: list[list[Entity]]  # in each text
    candidates: Optional[list[list[Entity]]]  # all spans that score above LOWEST_THRESHOLD, if they were looked for


def candidates_of(model: Any, dataset: NerDataset, batch_size: int) -> list[list[Entity]]:
    """For each text all spans that score above ``LOWEST_THRESHOLD``; raises InputError if the model does not tell spans
    apart yet."""

    def find(texts):
        return find_in_windows(model, texts, batch_size, LOWEST_THRESHOLD)

    return find_candidates(find, dataset.texts, [len(example.text) for example in dataset.examples])


def evaluate_model(model: Any, dataset: NerDataset, batch_size: int, with_candidates: bool = False) -> Evaluation:
    """Evaluate a :class:`tasks.ner.model.NerModel`, also while it is trained."""
    config, candidates = model.config, None
    if with_candidates:
        with contextlib.suppress(InputError):  # it has not learned much
            candidates = candidates_of(model, dataset, batch_size)
    if candidates is None:
        found = find_in_windows(model, dataset.texts, batch_size)
        found = found if config.allow_overlap else list(map(without_overlaps, found))
    else:
        found = above_thresholds(candidates, config.thresholds, config.types, config.allow_overlap)
    return Evaluation(scores_and_errors(dataset.examples, found, config.types), found, candidates)


def scores_and_errors(examples, found, types):
    """:func:`entity_scores` and :func:`error_analysis` of predictions, in one dict."""
    return {**entity_scores(examples, found, types), **error_analysis(examples, found)}
