"""Scores of a model, or of a predictor, on labeled texts. Without paddle, unless the model needs it."""

import contextlib
from typing import Any, NamedTuple, Optional

from tasks.common.errors import InputError, visible
from tasks.ner.batching import NerDataset
from tasks.ner.data.reading import check_labeled, read_examples
from tasks.ner.examples import Entity, Example, entity_types, without_overlaps
from tasks.ner.metrics import entity_scores
from tasks.ner.prediction.calibration import LOWEST_THRESHOLD, above_thresholds, find_candidates
from tasks.ner.prediction.finding import find_in_windows
from tasks.ner.prediction.predictor import NerPredictor
from tasks.ner.reports.error_analysis import error_analysis, worst_examples
from tasks.ner.reports.printed import print_data_report, print_errors, print_scores, print_worst_examples
from tasks.ner.reports.reliability import print_reliability, reliability

read_labeled = read_examples


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


def evaluate_predictor(
    predictor: NerPredictor, examples: list[Example], title: str, num_examples: int = 5
) -> dict[str, Any]:
    """Score a predictor on examples, print the scores, the kinds of errors and the ``num_examples`` texts with the most
    of them, and return all that. Entities of types that the predictor does not have count as missed."""
    check_labeled(examples, title)
    config = predictor.model.config
    unseen = sorted(set(entity_types(examples)) - set(predictor.types))
    types = [*predictor.types, *unseen]
    dataset = NerDataset(examples, predictor.tokenizer, types, max_span_length=config.max_span_length)
    if unseen:
        note = f"note: {title} has types that the model does not have, which count as missed: {', '.join(unseen)}"
        print(visible(note))
    print_data_report({title: dataset})
    longer = sum(text.size > predictor.max_tokens for text in dataset.texts)
    if longer:
        print(f"  {longer} of the texts are longer than {predictor.max_tokens} tokens: {predictor.reading.windows}")
    found = predictor.find([example.text for example in examples])
    scores = {
        **scores_and_errors(examples, found, types),
        "reliability": reliability(examples, found, predictor.types, config.temperatures),
        "worst_examples": worst_examples(examples, found, num_examples),
    }
    print_scores(title, scores)
    print_errors(scores)
    print_reliability(scores["reliability"])
    print_worst_examples(scores["worst_examples"])
    return scores


def scores_and_errors(examples, found, types):
    """:func:`entity_scores` and :func:`error_analysis` of predictions, in one dict."""
    return {**entity_scores(examples, found, types), **error_analysis(examples, found)}
