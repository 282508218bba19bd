"""From texts to labels, with a model in training, a trained one or an exported one."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tasks.classification.arguments import ClassificationConfig
from tasks.common.errors import InputError
from tasks.common.inference import encoder_outputs, pad_tokens
from tasks.common.model_folder import check_least
from tasks.common.predictor import Predictor


class TokenizedText(NamedTuple):
    """A text as tokens, and the number of its class."""

    ids: list
    label: int | None = None


class ClassificationDataset(list):
    """The :class:`TokenizedText` of each of ``examples``, whose class is its number in ``classes``; ``lengths`` are
    their tokens. ``cut`` texts are longer than ``max_characters``, and ``cut_characters`` of them are not read. Raises
    InputError for an unknown class."""

    def __init__(self, examples, tokenizer, classes, max_characters):
        self.examples = examples
        self.max_characters = max_characters
        number = {name: index for index, name in enumerate(classes)}
        for example in examples:
            if example.label not in number:
                raise InputError(
                    f"{example.where}: label {example.label!r} is unknown to the model, which knows "
                    f"{', '.join(classes)}; correct the label, or train a model on data that has it"
                )
            self.append(TokenizedText(tokenizer.encode(example.text[:max_characters]).ids, number[example.label]))
        self.lengths = [len(text.ids) for text in self]
        beyond = [len(example.text) - max_characters for example in examples if len(example.text) > max_characters]
        self.cut, self.cut_characters = len(beyond), sum(beyond)


def pad_texts(texts, pad_token_id):
    """The batch of a list of :class:`TokenizedText`: dict of arrays ``input_ids`` int64 and ``attention_mask`` bool
    ``[batch, seq]``, and ``labels`` int64 ``[batch]`` of texts that have them."""
    batch = pad_tokens([text.ids for text in texts], pad_token_id)
    if texts[0].label is not None:
        batch["labels"] = np.array([text.label for text in texts], dtype=np.int64)
    return batch


def predict_probabilities(model, texts, batch_size, show_progress=False):
    """Probabilities of a list of :class:`TokenizedText`, computed in batches of like length: float32 ``[texts,
    classes]``."""
    texts = [text._replace(label=None) for text in texts]
    collate = functools.partial(pad_texts, pad_token_id=model.config.pad_token_id)
    return encoder_outputs(model, texts, collate, batch_size, show_progress)


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
        tokenized = [TokenizedText(self.tokenizer.encode(text[: self.max_characters]).ids) for text in texts]
        return predict_probabilities(self.model, tokenized, self.batch_size, self.show_progress)


def as_record(text, classes, probabilities):
    """The form in which predictions are written."""
    best = int(np.argmax(probabilities))
    return {"text": text, "label": classes[best], "probability": round(float(probabilities[best]), 4)}
