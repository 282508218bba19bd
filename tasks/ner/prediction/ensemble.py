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
        for name, choose in (
            ("max_tokens", min),
            ("window_tokens", min),
            ("longest_text", min),
            ("longest_entity", max),
        ):
            known = [value for config in configs if (value := getattr(config, name)) is not None]
            setattr(self.config, name, choose(known, default=None))
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
    first, *others = [_reads_and_finds(folder, model.config) for folder, model in zip(folders, models)]
    for folder, other in zip(folders[1:], others):
        for name, value in first.items():
            if other[name] != value:
                raise InputError(
                    f"{folder}: its {name} differs from {folders[0]}, so their scores cannot be averaged; give "
                    "models that were trained on the same files with the same features"
                )


def _reads_and_finds(folder, config):
    files = {name: Path(folder) / name for name in SAME_FILES}
    contents = {name: file.read_bytes() if file.is_file() else None for name, file in files.items()}
    return {**contents, **{name: getattr(config, name) for name in SAME_KEYS}}
