"""Scores of a predictor on labeled texts. Without paddle, unless the predictor needs it."""

from __future__ import annotations

from typing import Any

from tasks.common.errors import visible
from tasks.ner.batching import NerDataset
from tasks.ner.data.reading import check_labeled, entity_types, read_examples
from tasks.ner.examples import Example
from tasks.ner.metrics import entity_scores
from tasks.ner.prediction.predictor import NerPredictor
from tasks.ner.reports.error_analysis import error_analysis, worst_examples
from tasks.ner.reports.printed import print_data_report, print_errors, print_scores, print_worst_examples
from tasks.ner.reports.reliability import print_reliability, reliability

read_labeled = read_examples


def evaluate_predictor(
    predictor: NerPredictor, examples: list[Example], title: str, num_examples: int = 5
) -> dict[str, Any]:
    """Score a predictor on examples, print the scores, the kinds of errors and the ``num_examples`` texts with the most
    of them, and return all that. Entities of types that the predictor does not have count as missed."""
    check_labeled(examples, title)
    texts = [example.text for example in examples]
    longest = predictor.model.config.max_span_length
    unseen = sorted(set(entity_types(examples)) - set(predictor.types))
    types = [*predictor.types, *unseen]
    dataset = NerDataset(examples, predictor.tokenizer, types, max_span_length=longest)
    if unseen:
        note = f"note: {title} has types that the model does not have, which count as missed: {', '.join(unseen)}"
        print(visible(note))
    print_data_report({title: dataset})
    longer = sum(len(text.ids) - 2 > predictor.max_tokens for text in dataset.texts)
    if longer:
        print(f"  {longer} of the texts are longer than {predictor.max_tokens} tokens: {predictor.reading.windows}")
    found = predictor.find(texts)
    scores = scores_and_errors(examples, found, types)
    gold = [example.entities for example in examples]
    scores["reliability"] = reliability(gold, found, predictor.types, predictor.model.config.temperatures)
    scores["worst_examples"] = worst_examples(examples, found, num_examples)
    print_scores(title, scores)
    print_errors(scores)
    print_reliability(scores["reliability"])
    print_worst_examples(scores["worst_examples"])
    return scores


def scores_and_errors(examples, found, types):
    """What is said of predictions: :func:`entity_scores` and :func:`error_analysis` in one dict."""
    gold = [example.entities for example in examples]
    return {**entity_scores(gold, found, types), **error_analysis(gold, found, types)}
