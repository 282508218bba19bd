"""The folder of a trained or exported NER model, read and checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from paddle_rope.json_files import read_json_object
from paddle_rope.machine import import_paddle
from tasks.common import model_folder
from tasks.common.errors import InputError
from tasks.common.export.folder import is_exported
from tasks.common.export.model import open_exported
from tasks.common.model_folder import MODEL_FILES, damage_reported, refuse_incomplete, refuse_other_recipe
from tasks.common.process import choose_device
from tasks.ner.features import FILE_NAME as FEATURES_FILE
from tasks.ner.features import WordFeatures
from tasks.ner.prediction.exported import ExportedNerModel

Folder = str | os.PathLike


def open_models(folders: list[Folder], device: str | None) -> tuple[Any, Any, WordFeatures | None]:
    """The tokenizer, the model and the word features, if it takes any, of a folder, or of several as an ensemble.

    Returns:
        (tokenizer, model, features); the model is a :class:`tasks.ner.model.NerModel`, a
        :class:`tasks.ner.prediction.ensemble.NerEnsemble` or an
        :class:`~tasks.ner.prediction.exported.ExportedNerModel`.

    Raises:
        InputError: a folder is not that of a model, files are damaged or do not fit together, or the device cannot be
            used.
    """
    for folder in folders:
        refuse_other_recipe(folder, "ner")
        refuse_incomplete(folder, _needed(Path(folder)))
    if len(folders) == 1 and is_exported(folders[0]):
        tokenizer, model = open_exported(folders[0], device, ExportedNerModel)
        return tokenizer, model, load_features(folders[0], model.config)
    import_paddle()
    from tasks.ner.model import NerModel
    from tasks.ner.prediction.ensemble import NerEnsemble

    choose_device(device)
    tokenizers, models = zip(*(model_folder.load_model(folder, NerModel, _check_config) for folder in folders))
    model = models[0] if len(models) == 1 else NerEnsemble(folders, list(models))
    return tokenizers[0], model, load_features(folders[0], model.config)


def _needed(folder):
    needed = [name for name in MODEL_FILES if not (name == "model.safetensors" and is_exported(folder))]
    return [*needed, FEATURES_FILE] if _has_features(folder / "config.json") else needed


def refuse_exported(folders: list[Folder], what: str) -> None:
    """Raise InputError if one of several folders is exported; ``what`` says what is wrong with that."""
    for folder in folders:
        if is_exported(folder):
            raise InputError(f"{folder}: {what}")


def _check_config(config):
    model_folder.check_named("types", config.types)
    model_folder.check_length("max_tokens", config.max_tokens)


def _has_features(config_file):
    try:
        return read_json_object(config_file).get("features") is not None
    except (OSError, ValueError, AttributeError):
        return False  # a missing or damaged file, which is another complaint


def load_features(model_dir: Folder, config: Any) -> WordFeatures | None:
    """The word features of a model's folder, None if it has none; raises InputError if they are damaged."""
    if config.features is None:
        return None
    folder = Path(model_dir)
    with damage_reported(folder, FEATURES_FILE):
        features = WordFeatures.from_pretrained(folder)
        if features.sizes != config.features:
            raise ValueError(f"its sizes are {features.sizes}, but the model's are {config.features}")
    return features
