"""Configurations of the RoFormers of other libraries as options of ours."""

import os
from pathlib import Path
from typing import Any

from paddle_rope.json_files import read_json_object
from paddle_rope.options import shown
from paddle_rope.roformer.checkpoints.names import DEFAULT_SIZES, HUGGINGFACE, PADDLENLP, PADDLENLP_V2, Layout
from paddle_rope.roformer.checkpoints.tensor_files import WEIGHT_FILES
from paddle_rope.roformer.config import NAMED

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
    """Whether ``settings`` belong to a model of this library."""
    return str(settings.get("model_type", "")).startswith("paddle_rope")


def options_of(settings: dict[str, Any], layout: Layout) -> dict[str, Any]:
    """Options of a RoFormerConfig, and of a classifier, for the configuration ``settings`` of another library.

    Raises:
        ValueError: an option is not supported.

    Example:
        >>> options_of({"hidden_act": "gelu_new", "rotary_value": True}, HUGGINGFACE)["position_embedding"]
        'qkv'
    """
    settings = {**layout.defaults, **settings}
    options = {key: settings[key] for key in SAME_KEYS if key in DEFAULT_SIZES or settings.get(key) is not None}
    options["embedding_size"] = settings.get("embedding_size") or settings["hidden_size"]
    options["position_embedding"] = "qkv" if settings.get("rotary_value") else "qk"
    options["hidden_act"] = _activation(settings, "hidden_act")
    if layout is HUGGINGFACE:
        _refuse(settings, add_cross_attention=False)
        options["causal"] = bool(settings.get("is_decoder", False))
        options["classifier_activation"] = options["hidden_act"]
        if settings.get("norm_type", "layer_norm") != "layer_norm":  # JunnYu's RoFormerV2
            _refuse(settings, norm_type="rms_norm", use_bias=False)
            options["version"] = 2
    elif layout is PADDLENLP:
        options["classifier_activation"] = _activation(settings, "pool_act")
    elif layout is PADDLENLP_V2:  # its epsilon is 1e-12 whatever is configured
        _refuse(settings, use_bias=False)
        options.update(version=2, layer_norm_eps=1e-12, embedding_size=settings["hidden_size"])
    if settings.get("id2label"):
        NAMED.check("id2label", settings["id2label"])
        options["id2label"] = settings["id2label"]
    return options


def _activation(settings, key):
    if not isinstance(settings[key], str) or settings[key] not in ACTIVATION_NAMES:
        raise ValueError(f"{key} is {shown(settings[key])}; known are {', '.join(ACTIVATION_NAMES)}")
    return ACTIVATION_NAMES[settings[key]]


def _refuse(settings, **supported):
    """Raise ValueError where an option of ``settings`` is there and is not the one that is supported."""
    for key, value in supported.items():
        if settings.get(key, value) != value:
            raise ValueError(f"{key} is {shown(settings[key])} in its configuration; only {value!r} can be read")
