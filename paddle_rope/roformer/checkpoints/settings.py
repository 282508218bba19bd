"""Configurations of RoFormers of others as arguments of ours."""

import os
from pathlib import Path
from typing import Any

from paddle_rope.json_files import read_json_object
from paddle_rope.options import MOST_LAYERS, shown
from paddle_rope.roformer.checkpoints.tensor_files import WEIGHT_FILES

CONFIG_FILES = ("config.json", "model_config.json")  # the second: PaddleNLP before 2.5
TENSORFLOW_CONFIG = "bert_config.json"
ACTIVATION_NAMES = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "tanh": "tanh",
}
# What the libraries take for a key that a folder's configuration lacks.
DEFAULT_SIZES = {
    "vocab_size": 50000,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "type_vocab_size": 2,
}
HUGGINGFACE_DEFAULTS = {**DEFAULT_SIZES, "hidden_act": "gelu"}
PADDLENLP_DEFAULTS = {**HUGGINGFACE_DEFAULTS, "vocab_size": 30522, "embedding_size": 768}
PADDLENLP_V2_DEFAULTS = {**HUGGINGFACE_DEFAULTS, "vocab_size": 12000, "hidden_act": "relu"}
SAME_KEYS = (
    *DEFAULT_SIZES,
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "layer_norm_eps",
    "pad_token_id",
)


def read_settings(folder: str | os.PathLike) -> dict[str, Any]:
    """The dictionary in the configuration file of a folder.

    Raises:
        ValueError: there is no such folder or file, or it is not JSON.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(
            f"{folder}: no such folder. Models are read from folders on this machine, nothing is downloaded: get the "
            f"files first ({CONFIG_FILES[0]}, one of {', '.join(WEIGHT_FILES)}, vocab.txt) and give their folder"
        )
    path = next((folder / name for name in CONFIG_FILES if (folder / name).is_file()), None)
    if path is None:
        hint = ""
        if (folder / TENSORFLOW_CONFIG).is_file():
            hint = "; this is a TensorFlow checkpoint: convert it with paddle-rope convert-weights"
        elif (folder / "model" / CONFIG_FILES[0]).is_file():
            hint = f"; give {folder / 'model'}"
        raise ValueError(f"{folder}: no model here, {CONFIG_FILES[0]} is missing{hint}")
    settings = read_json_object(path)
    # PaddleNLP before 2.5: {"init_args": [{sizes}], "init_class": name of the class with the head}
    given = settings.pop("init_args", None) or []
    if not isinstance(given, list) or not all(isinstance(inner, dict) for inner in given):
        raise ValueError(f"{path}: init_args is no list of objects; copy or download it again")
    return {key: value for inner in [settings, *given][::-1] for key, value in inner.items()}


def is_ours(settings: dict[str, Any]) -> bool:
    """Whether ``settings`` are those of a model of this library."""
    return str(settings.get("model_type", "")).startswith("paddle_rope")


def huggingface_config(folder: str | os.PathLike, settings: dict[str, Any]) -> dict[str, Any]:
    """Arguments of :class:`RoFormerConfig` for the configuration ``settings`` of a Hugging Face folder.

    Raises:
        ValueError: an option is not supported, or a size is not a number.
    """
    _refuse(folder, settings, add_cross_attention=False)
    config = _config(folder, settings, HUGGINGFACE_DEFAULTS)
    config["causal"] = bool(settings.get("is_decoder", False))
    config["classifier_activation"] = config["hidden_act"]
    if "norm_type" in settings and settings["norm_type"] != "layer_norm":  # JunnYu's RoFormerV2
        _refuse(folder, settings, norm_type="rms_norm", use_bias=False)
        config["version"] = 2
    return {**config, **_labels(folder, settings)}


def paddlenlp_config(folder: str | os.PathLike, settings: dict[str, Any]) -> dict[str, Any]:
    """As :func:`huggingface_config`, of PaddleNLP's RoFormer."""
    config = _config(folder, settings, PADDLENLP_DEFAULTS)
    config["classifier_activation"] = _activation(folder, {"pool_act": "tanh", **settings}, "pool_act")
    return {**config, **_labels(folder, settings)}


def paddlenlp_v2_config(folder: str | os.PathLike, settings: dict[str, Any]) -> dict[str, Any]:
    """As :func:`huggingface_config`, of PaddleNLP's RoFormerV2, whose epsilon is 1e-12 whatever is configured."""
    _refuse(folder, settings, use_bias=False)
    config = _config(folder, {**settings, "embedding_size": None}, PADDLENLP_V2_DEFAULTS)
    return {**config, "version": 2, "layer_norm_eps": 1e-12}


def tensorflow_config(folder: str | os.PathLike, settings: dict[str, Any], version: int) -> dict[str, Any]:
    """As :func:`huggingface_config`, of ``bert_config.json``."""
    return {**_config(folder, settings, HUGGINGFACE_DEFAULTS), "version": version}


def _config(folder, settings, defaults):
    """What all sources have in common."""
    settings = {**defaults, **settings}
    if settings.get("embedding_size") is None:
        settings["embedding_size"] = settings["hidden_size"]
    for key in (*DEFAULT_SIZES, "embedding_size"):
        if type(settings[key]) is not int or settings[key] < 0:
            raise ValueError(f"{folder}: {key} is {shown(settings[key])} in its configuration, not a number")
    layers = settings["num_hidden_layers"]
    if layers > MOST_LAYERS:
        what = f"num_hidden_layers is {layers} in its configuration, not a number of 0 to {MOST_LAYERS}"
        raise ValueError(f"{folder}: {what}")
    config = {key: settings[key] for key in SAME_KEYS if settings.get(key) is not None}
    config["embedding_size"] = settings["embedding_size"] or config["hidden_size"]
    config["version"] = 1
    config["position_embedding"] = "qkv" if settings.get("rotary_value") else "qk"
    config["hidden_act"] = _activation(folder, settings, "hidden_act")
    return config


def _activation(folder, settings, key):
    if not isinstance(settings[key], str) or settings[key] not in ACTIVATION_NAMES:
        raise ValueError(f"{folder}: {key} is {shown(settings[key])}; known are {', '.join(ACTIVATION_NAMES)}")
    return ACTIVATION_NAMES[settings[key]]


def _labels(folder, settings):
    """The names of the classes, where they were given."""
    labels = settings.get("id2label")
    if labels and not isinstance(labels, dict):
        raise ValueError(f"{folder}: id2label is {shown(labels)} in its configuration, not an object")
    return {"id2label": labels} if labels else {}


def _refuse(folder, settings, **wanted):
    """Raise ValueError where an option of ``settings`` is there and is not the one wanted."""
    for key, value in wanted.items():
        if settings.get(key, value) != value:
            found = shown(settings[key])
            raise ValueError(f"{folder}: {key} is {found} in its configuration; only {value!r} can be read")
