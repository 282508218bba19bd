"""From texts to labels, with a model in training, a trained one or an exported one; and the scores of these labels."""

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from paddle_rope.tasks.classification.arguments import (
    ClassificationArguments,
    ClassificationConfig,
    ClassificationOptions,
)
from paddle_rope.tasks.classification.data import LABELED, with_unseen
from paddle_rope.tasks.common.errors import InputError, visible
from paddle_rope.tasks.common.inference import Tokens, encoder_outputs, pad_items
from paddle_rope.tasks.common.predictor import Predictor, check_positions
from paddle_rope.tasks.common.reports.tables import confusions_of, f1_row, print_confusions, print_score_rows


class ClassificationDataset:
    """Tokenized ``examples``: ``texts`` are their ``Tokens``, ``labels`` the numbers of their classes in ``classes``,
    ``lengths`` their token counts; ``collate`` makes a batch of items. ``cut`` is the number of texts longer than
    ``max_characters``, ``cut_characters`` of their unread characters."""

    def __init__(self, examples, tokenizer, classes, max_characters):
        self.examples, self.classes = examples, classes
        self.max_characters = max_characters
        number = {name: index for index, name in enumerate(classes)}
        self.texts = [Tokens(tokenizer.encode(example.text[:max_characters]).ids) for example in examples]
        self.labels = [number[example.label] for example in examples]
        self.lengths = [len(text.ids) for text in self.texts]
        self.collate = functools.partial(pad_items, pad_token_id=tokenizer.pad_token_id, dtype="int64")
        beyond = [len(example.text) - max_characters for example in examples if len(example.text) > max_characters]
        self.cut, self.cut_characters = len(beyond), sum(beyond)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        """([text], label) of an example."""
        return [self.texts[index]], self.labels[index]


class Classifier(Predictor):
    """Finds the class of texts. Threads may share it."""

    arguments = ClassificationArguments
    labeled = LABELED
    config_class = ClassificationConfig
    options_class = ClassificationOptions

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        check_positions("max_characters", self.options.max_characters, self.model.config)
        self.classes = self.model.config.classes
        self.max_characters = self.options.max_characters or self.model.config.max_characters

    def __call__(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """For each text, in order, ``{"text": ..., "label": ..., "probability": ...}``: the most probable class. Raises
        InputError if ``texts`` is not a list of strings."""
        return [as_record(text, self.classes, of_text) for text, of_text in zip(texts, self.probabilities(texts))]

    @property
    def long_texts(self):
        return self.max_characters, f"cut to --max_characters {self.max_characters}"

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Probabilities of all classes: float32 array ``[texts, classes]``."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts must be a list of strings; write [text]")
        tokenized = [Tokens(self.tokenizer.encode(text[: self.max_characters]).ids) for text in texts]
        return encoder_outputs(self.model, tokenized, self.batch_size, self.show_progress)

    def evaluate(self, examples: list, title: str) -> dict[str, Any]:
        """Score the most probable classes, print the scores and return them. Classes that the model lacks
        count as wrong."""
        classes = with_unseen(self.classes, examples)
        if unseen := ", ".join(classes[len(self.classes) :]):
            print(visible(f"note: {title} has classes that the model does not have, which count as wrong: {unseen}"))
        dataset = ClassificationDataset(examples, self.tokenizer, classes, self.max_characters)
        print_data_report({title: dataset})
        scores, _ = evaluate_model(self.model, dataset, self.batch_size, self.show_progress)
        print_scores(title, scores)
        return scores


def as_record(text, classes, probabilities):
    """The record of a prediction: the most probable class of a text."""
    best = int(np.argmax(probabilities))
    return {"text": text, "label": classes[best], "probability": round(float(probabilities[best]), 4)}


# ---- scores


def evaluate_model(model, dataset, batch_size, show_progress=False):
    """The :func:`classification_scores` of a model on a :class:`ClassificationDataset`, and its probabilities."""
    probabilities, classes = encoder_outputs(model, dataset.texts, batch_size, show_progress), model.config.classes
    predicted = [classes[best] for best in probabilities.argmax(axis=1)]
    gold = [example.label for example in dataset.examples]
    return classification_scores(gold, predicted, dataset.classes), probabilities


def classification_scores(gold, predicted, classes):
    """Scores of one label per text: ``accuracy``; ``macro_f1``, the mean F1 of the classes that occur as gold or
    predicted label; ``texts``, their number; ``per_class``, from a class to its ``f1_row``; ``confusions`` as from
    ``confusions_of``."""
    pairs = Counter(zip(gold, predicted))
    supports, predictions = Counter(gold), Counter(predicted)
    per_class = {name: f1_row(supports[name], predictions[name], pairs[name, name]) for name in classes}
    seen = [row["f1"] for row in per_class.values() if row["support"] or row["predicted"]]
    wrong = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
    return {
        "accuracy": sum(row["correct"] for row in per_class.values()) / len(gold),
        "macro_f1": sum(seen) / len(seen),
        "texts": len(gold),
        "per_class": per_class,
        "confusions": confusions_of(wrong),
    }


def print_data_report(datasets):
    """Print the size of each ``ClassificationDataset`` in a dict, and what ``max_characters`` cuts."""
    for name, dataset in datasets.items():
        lengths = sorted(len(example.text) for example in dataset.examples)
        sizes = f"{sum(lengths):,} characters (median {lengths[len(lengths) // 2]}, longest {lengths[-1]:,})"
        print(f"{visible(name)}: {len(lengths)} texts, {sizes}")
        if dataset.cut:
            share = f"{dataset.cut_characters / sum(lengths):.0%} of the characters are not read"
            print(f"  {dataset.cut} texts are cut to --max_characters {dataset.max_characters}, {share}")


def print_scores(title, scores):
    """Print the scores of :func:`classification_scores`: a table of the classes, and the most frequent confusions."""
    print_score_rows(title, "class", scores["per_class"].items())
    shares = f"accuracy {scores['accuracy']:.4f}, macro F1 {scores['macro_f1']:.4f}"
    print(f"{visible(title)}: {shares}, {scores['texts']} texts")
    print_confusions(scores["confusions"])
