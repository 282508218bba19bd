"""From texts to labels, with a model in training, a trained one or an exported one."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.classification.arguments import ClassificationConfig
from tasks.common.errors import InputError
from tasks.common.inference import Tokens, encoder_outputs
from tasks.common.predictor import Predictor, check_least


class ClassificationDataset:
    """Tokenized ``examples``: ``texts`` are their :class:`~tasks.common.inference.Tokens`, ``labels`` the numbers of
    their classes in ``classes``, ``lengths`` their tokens. ``cut`` texts are longer than ``max_characters``, and
    ``cut_characters`` of them are not read. Raises InputError for an unknown class."""

    def __init__(self, examples, tokenizer, classes, max_characters):
        self.examples = examples
        self.max_characters = max_characters
        self.texts, self.labels = [], []
        number = {name: index for index, name in enumerate(classes)}
        for example in examples:
            if example.label not in number:
                raise InputError(
                    f"{example.where}: label {example.label!r} is unknown to the model, which knows "
                    f"{', '.join(classes)}; correct the label, or train a model on data that has it"
                )
            self.texts.append(Tokens(tokenizer.encode(example.text[:max_characters]).ids))
            self.labels.append(number[example.label])
        self.lengths = [len(text.ids) for text in self.texts]
        beyond = [len(example.text) - max_characters for example in examples if len(example.text) > max_characters]
        self.cut, self.cut_characters = len(beyond), sum(beyond)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        """([text], label) of an example."""
        return [self.texts[index]], self.labels[index]


class Classifier(Predictor):
    """Finds the class of texts. Threads may share it.

    Args:
        max_characters: characters of a text that are read, from its beginning; None for the number of training.
        model_dir, device, batch_size, show_progress, bf16: as of :class:`~tasks.common.predictor.Predictor`.
    """

    recipe = "classification"
    model_class = "tasks.classification.model:ClassificationModel"
    config_class = ClassificationConfig

    def __init__(
        self,
        model_dir: str | os.PathLike,
        device: str | None = None,
        batch_size: int = 32,
        max_characters: int | None = None,
        show_progress: bool = False,
        bf16: bool = False,
    ) -> None:
        check_least("max_characters", max_characters)
        super().__init__(model_dir, device, batch_size, show_progress, bf16)
        self.classes = self.model.config.classes
        self.max_characters = max_characters or self.model.config.max_characters

    def __call__(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """For each text, in order, ``{"text": ..., "label": ..., "probability": ...}``: the most probable class.

        Raises:
            InputError: ``texts`` is not a list of strings.
        """
        return [as_record(text, self.classes, of_text) for text, of_text in zip(texts, self.probabilities(texts))]

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Probabilities of all classes: float32 array ``[texts, classes]``."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("texts must be a list of strings; write [text]")
        tokenized = [Tokens(self.tokenizer.encode(text[: self.max_characters]).ids) for text in texts]
        return encoder_outputs(self.model, tokenized, self.batch_size, self.show_progress)


def as_record(text, classes, probabilities):
    """The form in which predictions are written."""
    best = int(np.argmax(probabilities))
    return {"text": text, "label": classes[best], "probability": round(float(probabilities[best]), 4)}
