"""Weights of a folder into a model, with a report of what did not come from the folder."""

import logging
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddlenlp.transformers import PretrainedModel

from paddle_rope.roformer.checkpoints.reading import read_checkpoint, read_weights
from paddle_rope.roformer.checkpoints.settings import is_ours, read_settings
from paddle_rope.roformer.configuration import RoFormerConfig

logger = logging.getLogger(__name__)


def load_pretrained(
    model_class: type[PretrainedModel], folder: str | os.PathLike, config: RoFormerConfig | None = None, **changes: Any
) -> PretrainedModel:
    """Build a model with the weights of a folder; see :meth:`RoFormerPretrainedModel.from_pretrained`."""
    folder = Path(folder)
    settings = read_settings(folder)
    if config is not None and changes:
        raise TypeError(f"from_pretrained: give config or {', '.join(changes)}, not both")
    config_class = model_class.config_class
    if "dtype" in changes:
        raise TypeError("from_pretrained: weights are read as float32; give the model another dtype afterwards")
    config_class.check_names(changes)
    unused: list[str] = []
    if is_ours(settings):
        tensors = read_weights(folder)
        sources = {name: name for name in tensors}
        for name in ("model_type", "architectures", "paddlenlp_version"):
            settings.pop(name, None)
    else:
        settings, tensors, sources, unused, _ = read_checkpoint(folder)
    if "num_labels" in changes:
        settings = {name: value for name, value in settings.items() if name not in ("id2label", "label2id")}
    model = model_class(config_class.from_dict({**settings, **changes}) if config is None else config)
    new, left = set_weights(model, tensors, folder)
    report(model, folder, new, sorted([sources[name] for name in left] + unused))
    return model


def set_weights(model: PretrainedModel, tensors: dict[str, np.ndarray], where: object) -> tuple[list[str], list[str]]:
    """Set the weights of ``model`` by name, whether or not the encoder's have the prefix ``roformer.``.

    Args:
        model: a RoFormer, with or without a head.
        tensors: ``{name: numpy array}``.
        where: folder, for the messages.

    Returns:
        Names of the model that ``tensors`` lacks, and names of ``tensors`` that the model lacks.

    Raises:
        ValueError: shapes differ, or no tensor of the encoder is there.
    """
    prefix = f"{model.base_model_prefix}."
    state = model.state_dict()
    has_prefix = any(name.startswith(prefix) for name in tensors)
    wants_prefix = any(name.startswith(prefix) for name in state)
    names: dict[str, str | None] = {name: name for name in tensors}  # in the file -> in the model
    if has_prefix and not wants_prefix:
        names = {name: name.removeprefix(prefix) if name.startswith(prefix) else None for name in tensors}
    elif wants_prefix and not has_prefix:
        names = {name: prefix + name for name in tensors}
    found = {names[name]: array for name, array in tensors.items() if names[name] in state}
    wrong = [
        f"{name} is {list(array.shape)} there and {list(state[name].shape)} in the model"
        for name, array in found.items()
        if list(array.shape) != list(state[name].shape)
    ]
    if wrong:
        raise ValueError(f"{where}: its weights do not fit the model: {'; '.join(wrong)}")
    if f"{prefix if wants_prefix else ''}token_embedding.weight" not in found:
        raise ValueError(f"{where}: holds no weights of a RoFormer of this library")
    for name, array in found.items():
        state[name].set_value(paddle.to_tensor(array, dtype=state[name].dtype))
    return [name for name in state if name not in found], [name for name in tensors if names[name] not in state]


def report(model: PretrainedModel, folder: str | os.PathLike, new: list[str], unused: list[str]) -> None:
    """Warn of weights that are ``new`` and of those in the folder that are ``unused``, if there are any."""
    kind = type(model).__name__
    if new:
        logger.warning("%s from %s: new, as initialized: %s", kind, folder, _summary(new))
    if unused:
        logger.warning("%s from %s: in the folder, but not used: %s", kind, folder, _summary(unused))


def _summary(names):
    """Names in their order, those that differ in the number of the layer together."""
    counts = Counter(re.sub(r"([._/])\d+(?=[./])", r"\1*", name) for name in names)
    return ", ".join(f"{name} ({count})" if "*" in name else name for name, count in counts.items())
