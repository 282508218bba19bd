"""From texts to labels with a trained or exported model."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.classification.batching import TokenizedText, pad_texts, tokenize
from tasks.classification.config import ClassificationConfig
from tasks.common.errors import InputError
from tasks.common.export.model import ExportedModel
from tasks.common.inference import Batch, encoder_outputs
from tasks.common.model_folder import check_least
from tasks.common.predictor import Predictor


class ExportedClassificationModel(ExportedModel):
    """The graph of an exported folder as a :class:`~tasks.classification.model.ClassificationModel`."""

    config_class = ClassificationConfig

    def find_probabilities(self, batch: Batch) -> np.ndarray:
        """As of the trained model."""
        return self.run(batch, (len(batch["input_ids"]), len(self.config.classes)))[0]


class Classifier(Predictor):
    """Finds the class of texts. Threads may share it.

    Args:
        max_characters: characters of a text that are read, from its beginning; None for the number of training.
        model_dir, device, batch_size, show_progress, bf16: as of :class:`~tasks.common.predictor.Predictor`.
    """

    recipe = "classification"
    model_class = "tasks.classification.model:ClassificationModel"
    exported_class = ExportedClassificationModel

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
        tokenized = [TokenizedText(tokenize(text, self.tokenizer, self.max_characters)) for text in texts]
        return predict_probabilities(self.model, tokenized, self.batch_size, self.show_progress)


def as_record(text, classes, probabilities):
    """The form in which predictions are written."""
    best = int(np.argmax(probabilities))
    return {"text": text, "label": classes[best], "probability": round(float(probabilities[best]), 4)}


def predict_probabilities(model, texts, batch_size, show_progress=False):
    """Probabilities of a list of :class:`tasks.classification.batching.TokenizedText`, computed in batches of like
    length: float32 array ``[texts, classes]``."""
    texts = [text._replace(label=None) for text in texts]
    collate = functools.partial(pad_texts, pad_token_id=model.config.pad_token_id)
    shape = [len(model.config.classes)]
    return encoder_outputs(model.find_probabilities, texts, collate, batch_size, model.config, shape, show_progress)
