"""Scores of a predictor on labeled texts. Without paddle, unless the predictor needs it."""

from __future__ import annotations

from tasks.classification.batching import ClassificationDataset
from tasks.classification.data import Example, read_examples
from tasks.classification.metrics import classification_scores
from tasks.classification.prediction import Classifier, predict_probabilities
from tasks.classification.report import print_data_report, print_scores

read_labeled = read_examples


def evaluate_predictor(predictor: Classifier, examples: list[Example], title: str) -> dict:
    """Score a predictor on examples, print the scores and return them."""
    dataset = ClassificationDataset(examples, predictor.tokenizer, predictor.classes, predictor.max_characters)
    print_data_report({title: dataset})
    probabilities = predict_probabilities(predictor.model, dataset.texts, predictor.batch_size, predictor.show_progress)
    scores = score_probabilities(examples, probabilities, predictor.classes)
    print_scores(title, scores)
    return scores


def score_probabilities(examples, probabilities, classes):
    """:func:`classification_scores` of labeled examples."""
    predicted = [classes[best] for best in probabilities.argmax(axis=1)]
    return classification_scores([example.label for example in examples], predicted, classes)
