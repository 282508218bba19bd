"""An ensemble of several NER models."""

import copy
import os
from pathlib import Path

import numpy as np
from paddle import nn

from tasks.common.errors import InputError
from tasks.ner.config import of_types
from tasks.ner.features import FILE_NAME as FEATURES_FILE
from tasks.ner.model import NerModel

# What says how a text becomes the input of a model and its scores become entities.
SAME_FILES = ("vocab.txt", "tokenizer_config.json", FEATURES_FILE)
SAME_KEYS = ("types", "max_span_length", "allow_overlap")


class NerEnsemble(nn.Layer):
    """The mean of the scores of several models, as a :class:`~tasks.ner.model.NerModel` for prediction. Sizes, number
    of layers and attention may differ.

    Models that differ in nothing but their seed make different mistakes (Lakshminarayanan et al. 2017, arXiv
    1612.01474, who average probabilities; here it is logits, which each model was trained to have above 0 at entities).
    ``config`` is of the first model, with the means of the thresholds and of the temperatures, and the lengths that
    suit all. Raises InputError if the models do not read the same tokens and features, or do not find the same types.
    """

    def __init__(self, folders: list[str | os.PathLike], models: list[NerModel]):
        super().__init__()
        _refuse_different(folders, models)
        self.members = nn.LayerList(models)
        configs = [model.config for model in models]
        self.config = copy.copy(configs[0])
        for name in ("max_tokens", "window_tokens", "longest_text", "longest_entity"):
            known = [value for config in configs if (value := getattr(config, name)) is not None]
            setattr(self.config, name, (max if name == "longest_entity" else min)(known, default=None))
        for name in ("thresholds", "temperatures"):
            of_models = [of_types(getattr(config, name), len(config.types)) for config in configs]
            setattr(self.config, name, np.mean(of_models, axis=0).tolist())
        self.eval()

    def forward(self, input_ids, attention_mask, token_mask, columns=None, flags=None):
        """Logits of a batch, from the arguments of a model."""
        scores = [member(input_ids, attention_mask, token_mask, columns, flags) for member in self.members]
        return sum(scores) / len(scores)

    find_spans = NerModel.find_spans
    decode = NerModel.decode
    scores_of_text = NerModel.scores_of_text


def _refuse_different(folders, models):
    def value(folder, model, name):
        if name in SAME_KEYS:
            return getattr(model.config, name)
        file = Path(folder) / name
        return file.read_bytes() if file.is_file() else None

    for folder, model in zip(folders[1:], models[1:]):
        for name in (*SAME_FILES, *SAME_KEYS):
            if value(folder, model, name) != value(folders[0], models[0], name):
                raise InputError(
                    f"{folder}: its {name} differs from {folders[0]}, so their scores cannot be averaged; give "
                    "models that were trained on the same files with the same features"
                )
