"""The folder of a trained or exported NER model, read and checked."""

import json
import os
from pathlib import Path

from tasks.common import model_folder
from tasks.common.model_folder import MODEL_FILES, damage_reported, refuse_incomplete
from tasks.ner.features import FILE_NAME as FEATURES_FILE
from tasks.ner.features import WordFeatures
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.exported import ExportedNerModel, check_graph, is_exported


def check_model_dir(model_dir: str | os.PathLike) -> None:
    """Raise InputError unless ``model_dir`` holds a model; names the right folder where it is easy to guess."""
    folder = Path(model_dir)
    needed = [*MODEL_FILES, FEATURES_FILE] if _has_features(folder / "config.json") else [*MODEL_FILES]
    if is_exported(folder):
        needed.remove("model.safetensors")  # the graph has its own
        check_graph(folder)
    refuse_incomplete(folder, needed)


def load_model(model_dir: str | os.PathLike):
    """The tokenizer and the model of a folder; raises InputError if its files are damaged or do not fit together."""
    if is_exported(model_dir):
        tokenizer, config = model_folder.load_settings(model_dir, NerConfig, _check_config)
        return tokenizer, ExportedNerModel(model_dir, config)
    return model_folder.load_model(model_dir, NerModel, _check_config)


def _check_config(config):
    model_folder.check_named("types", config.types)
    model_folder.check_length("max_tokens", config.max_tokens)


def _has_features(config_file):
    try:
        return json.loads(config_file.read_text(encoding="utf-8")).get("features") is not None
    except (OSError, ValueError, AttributeError):
        return False  # a missing or damaged file, which is another complaint


def load_features(model_dir: str | os.PathLike, config: NerConfig) -> WordFeatures | None:
    """The word features of a model's folder, None if it has none; raises InputError if they are damaged."""
    if config.features is None:
        return None
    folder = Path(model_dir)
    with damage_reported(folder, FEATURES_FILE):
        features = WordFeatures.from_pretrained(folder)
        if features.sizes != config.features:
            raise ValueError(f"its sizes are {features.sizes}, but the model's are {config.features}")
    return features
