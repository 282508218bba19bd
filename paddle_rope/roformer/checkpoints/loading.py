"""Weights of a folder into a model, with a report of what did not come from the folder."""

from __future__ import annotations

import logging
import math
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

import paddle

from paddle_rope.roformer.checkpoints.reading import Checkpoint

if TYPE_CHECKING:
    from paddle_rope.roformer.pretrained import RoFormerPretrainedModel

_Model = TypeVar("_Model", bound="RoFormerPretrainedModel")

logger = logging.getLogger(__name__)

PREFIX = "roformer."  # of the encoder in a model with a head
MOST_NEW_NUMBERS = 2**28  # of weights that a folder lacks: 1 GB
_SMALL = 2**22  # numbers of a square matrix that fit anywhere
_BUILDING = threading.Lock()  # LazyGuard is for all threads
_SHOWN = 10  # weights of another shape in a message


def build_model(model_class: type[_Model], checkpoint: Checkpoint, where: object, **changes: Any) -> _Model:
    """A model with the weights of a checkpoint; a warning names new weights and weights that are left over.

    Whether or not the encoder's weights have the prefix ``roformer.`` does not matter.

    Args:
        model_class: a RoFormer, with or without a head.
        checkpoint: as from :func:`~paddle_rope.roformer.checkpoints.reading.read_checkpoint`.
        where: folder, for the messages.
        changes: options of the configuration that differ from the checkpoint's.

    Raises:
        ValueError: an option does not fit, shapes differ, no weight of the encoder is there, or too many are missing;
            before memory is taken.
    """
    tensors, config = checkpoint.tensors, model_class.config_class.from_dict(checkpoint.config, **changes)
    with _BUILDING:
        placed = _places(model_class, config, checkpoint, where)
        model = model_class(config)
    state = model.state_dict()
    for name, source in placed.items():
        state[name].set_value(paddle.to_tensor(tensors[source], dtype=state[name].dtype))
    new = [name for name in state if name not in placed]
    unplaced = set(tensors) - set(placed.values())
    unused = sorted([checkpoint.sources[name] for name in unplaced] + checkpoint.unused)
    for what, names in (("new, as initialized", new), ("in the folder, but not used", unused)):
        if names:
            logger.warning("%s from %s: %s: %s", model_class.__name__, where, what, _summary(names))
    return model


def _places(model_class, config, checkpoint, where):
    """``{name in the model: name in the checkpoint}``, without memory for a model; errors as :func:`build_model`."""
    tensors = checkpoint.tensors
    numbers = sum(array.size for array in tensors.values())
    if config.hidden_size**2 > max(numbers, _SMALL):
        raise ValueError(f"{where}: holds {numbers:,} numbers, too few for hidden_size {config.hidden_size}")
    # parameters that have a shape, and no numbers yet; the names that Paddle counts are free again
    with paddle.utils.unique_name.guard(), paddle.LazyGuard():
        shapes = {name: list(weight.shape) for name, weight in model_class(config).state_dict().items()}
    names = {name.removeprefix(PREFIX): name for name in shapes}
    placed = {names[bare]: name for name in tensors if (bare := name.removeprefix(PREFIX)) in names}
    wrong = [
        f"{checkpoint.sources[source]} is {list(tensors[source].shape)} there and {shapes[name]} in the model"
        for name, source in placed.items()
        if list(tensors[source].shape) != shapes[name]
    ]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise ValueError(f"{where}: its weights do not fit the model: {'; '.join(wrong[:_SHOWN])}{more}")
    if names["token_embedding.weight"] not in placed:
        raise ValueError(f"{where}: holds no weights of a RoFormer of this library")
    new = sum(math.prod(shape) for name, shape in shapes.items() if name not in placed)
    if new > MOST_NEW_NUMBERS:
        raise ValueError(f"{where}: lacks weights of {new:,} numbers that its configuration needs")
    return placed


def _summary(names):
    """Names in their order; names that differ only in the number of the layer are counted together."""
    counts = Counter(re.sub(r"([._/])\d+(?=[./])", r"\1*", name) for name in names)
    return ", ".join(f"{name} ({count})" if "*" in name else name for name, count in counts.items())
