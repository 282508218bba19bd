"""Weights of a folder into a model, with a report of what did not come from the folder."""

from __future__ import annotations

import logging
import math
import os
import re
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle

from paddle_rope.roformer.checkpoints.reading import read_checkpoint, read_weights
from paddle_rope.roformer.checkpoints.settings import is_ours, read_settings
from paddle_rope.roformer.config import RoFormerConfig

if TYPE_CHECKING:
    from paddle_rope.roformer.pretrained import RoFormerPretrainedModel

logger = logging.getLogger(__name__)

MOST_NEW_NUMBERS = 2**28  # of weights that a folder lacks: 1 GB
_SMALL = 2**22  # numbers of a square matrix that fit anywhere
_BUILDING = threading.Lock()  # LazyGuard is for all threads
_SHOWN = 10  # weights of another shape in a message


def load_pretrained(
    model_class: type[RoFormerPretrainedModel],
    folder: str | os.PathLike,
    config: RoFormerConfig | None = None,
    **changes: Any,
) -> RoFormerPretrainedModel:
    """Build a model with the weights of a folder; see :meth:`RoFormerPretrainedModel.from_pretrained`."""
    folder = Path(folder)
    settings = read_settings(folder)
    if config is not None and changes:
        raise TypeError(f"from_pretrained: give config or {', '.join(changes)}, not both")
    config_class = model_class.config_class
    if "dtype" in changes:
        raise TypeError("from_pretrained: weights are read as float32; give the model another dtype afterwards")
    unused: list[str] = []
    if is_ours(settings):
        tensors = read_weights(folder)
        sources = {name: name for name in tensors}
    else:
        settings, tensors, sources, unused, _ = read_checkpoint(folder)
    config = config_class.from_dict(settings, **changes) if config is None else config
    with _BUILDING:
        check_sizes(model_class, config, tensors, folder)
        model = model_class(config)
    new, left = set_weights(model, tensors, folder)
    report(model, folder, new, sorted([sources[name] for name in left] + unused))
    return model


def check_sizes(
    model_class: type[RoFormerPretrainedModel], config: RoFormerConfig, tensors: dict[str, np.ndarray], where: object
) -> None:
    """Raise ValueError, before memory is taken for a model, if its weights are not of the shapes of ``tensors``, or if
    those that ``tensors`` lack have more than ``MOST_NEW_NUMBERS`` numbers. Arguments are those of :func:`set_weights`.
    """
    numbers = sum(array.size for array in tensors.values())
    if config.hidden_size**2 > max(numbers, _SMALL):
        raise ValueError(f"{where}: holds {numbers:,} numbers, too few for hidden_size {config.hidden_size}")
    # parameters that have a shape, and no numbers yet; the names that Paddle counts are free again
    with paddle.utils.unique_name.guard(), paddle.LazyGuard():
        model = model_class(config)
    found = _placed(model, tensors, where)
    new = sum(math.prod(weight.shape) for name, weight in model.state_dict().items() if name not in found)
    if new > MOST_NEW_NUMBERS:
        raise ValueError(f"{where}: lacks weights of {new:,} numbers that its configuration asks for")


def set_weights(
    model: RoFormerPretrainedModel, tensors: dict[str, np.ndarray], where: object
) -> tuple[list[str], list[str]]:
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
    state, found = model.state_dict(), _placed(model, tensors, where)
    for name, source in found.items():
        state[name].set_value(paddle.to_tensor(tensors[source], dtype=state[name].dtype))
    used = set(found.values())
    return [name for name in state if name not in found], [name for name in tensors if name not in used]


def _placed(model, tensors, where):
    """``{name in the model: name in tensors}``; raises ValueError as :func:`set_weights`."""
    prefix = "roformer."
    state = model.state_dict()
    has_prefix = any(name.startswith(prefix) for name in tensors)
    wants_prefix = any(name.startswith(prefix) for name in state)
    names: dict[str, str | None] = {name: name for name in tensors}  # in the file -> in the model
    if has_prefix and not wants_prefix:
        names = {name: name.removeprefix(prefix) if name.startswith(prefix) else None for name in tensors}
    elif wants_prefix and not has_prefix:
        names = {name: prefix + name for name in tensors}
    found = {names[name]: name for name in tensors if names[name] in state}
    wrong = [
        f"{name} is {list(tensors[source].shape)} there and {list(state[name].shape)} in the model"
        for name, source in found.items()
        if list(tensors[source].shape) != list(state[name].shape)
    ]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise ValueError(f"{where}: its weights do not fit the model: {'; '.join(wrong[:_SHOWN])}{more}")
    if f"{prefix if wants_prefix else ''}token_embedding.weight" not in found:
        raise ValueError(f"{where}: holds no weights of a RoFormer of this library")
    return found


def report(model: RoFormerPretrainedModel, folder: str | os.PathLike, new: list[str], unused: list[str]) -> None:
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
