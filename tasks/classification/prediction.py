"""From texts to labels with a trained model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from paddle_rope.machine import import_paddle
from tasks.classification.batching import TextCollator, TokenizedText, tokenize
from tasks.common.errors import InputError
from tasks.common.export.folder import is_exported
from tasks.common.export.model import ExportedModel, open_exported
from tasks.common.inference import Batch, outputs_of
from tasks.common.model_folder import check_least, check_length, check_named, open_model, refuse_other_recipe
from tasks.common.predictor import predict_in_bfloat16

# Numbers of the largest tensor of one batch: bounds memory for long texts.
MAX_BATCH_NUMBERS = 1 << 26


class Classifier:
    """Finds the class of texts. Threads may share it.

    Args:
        model_dir: folder that training wrote as ``OUTPUT_DIR/model``, or of an exported model.
        device: ``"cpu"``, ``"gpu"`` ...; None takes a GPU where there is one.
        batch_size: texts a batch at most.
        max_characters: characters of a text that are read, from its beginning; None takes what the model was trained
            with.
        show_progress: show a progress bar.
        bf16: multiply in bfloat16, see :func:`tasks.common.predictor.predict_in_bfloat16`.

    Raises:
        InputError: the folder does not hold a model, the device cannot be used or has no bfloat16, or a size is out of
            range.
    """

    recipe = "classification"

    def __init__(
        self,
        model_dir: str | os.PathLike,
        device: str | None = None,
        batch_size: int = 32,
        max_characters: int | None = None,
        show_progress: bool = False,
        bf16: bool = False,
    ) -> None:
        check_least("batch_size", batch_size)
        check_least("max_characters", max_characters)
        refuse_other_recipe(model_dir, "classification")
        if is_exported(model_dir):
            self.tokenizer, self.model = open_exported(model_dir, device, ExportedClassificationModel)
        else:
            import_paddle()
            from tasks.classification.model import ClassificationModel

            self.tokenizer, self.model = open_model(model_dir, device, ClassificationModel, _check_config)
        if bf16:
            predict_in_bfloat16(self.model)
        self.classes = self.model.config.classes
        self.batch_size = batch_size
        self.max_characters = max_characters or self.model.config.max_characters
        self.show_progress = show_progress

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
    found = np.zeros([len(texts), len(model.config.classes)], dtype=np.float32)
    collate = TextCollator(model.config.pad_token_id, with_labels=False)

    def numbers_of(length):
        return numbers_of_text(model.config, length)

    outputs = outputs_of(
        model.find_probabilities, texts, collate, batch_size, numbers_of, MAX_BATCH_NUMBERS, show_progress
    )
    for rows, probabilities in outputs:
        found[rows] = probabilities
    return found


def numbers_of_text(config, length):
    """How many numbers the largest tensor of a layer has for a text of ``length`` tokens."""
    scores = config.num_attention_heads * length * length if "softmax" in config.attention else 0
    return max(scores, config.intermediate_size * length)


class ExportedClassificationModel(ExportedModel):
    """The graph of an exported folder as a :class:`~tasks.classification.model.ClassificationModel`."""

    kinds = {
        "classes": list,
        "max_characters": int,
        "pad_token_id": int,
        "attention": (str, list),
        "num_attention_heads": int,
        "intermediate_size": int,
    }

    def check(self):
        _check_config(self.config)

    def find_probabilities(self, batch: Batch) -> np.ndarray:
        """As of the trained model."""
        return self.run(batch, (len(batch["input_ids"]), len(self.config.classes)))[0]


def _check_config(config):
    check_named("classes", config.classes, least=2)
    check_length("max_characters", config.max_characters)
