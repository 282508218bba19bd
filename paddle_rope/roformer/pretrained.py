"""Base of the models: initial weights, loading from a folder and saving to one."""

import logging
import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import paddle
from paddle import nn

from paddle_rope.files import replace_file
from paddle_rope.layers import shapes_only
from paddle_rope.roformer.checkpoints.reading import Checkpoint, listed, read_checkpoint
from paddle_rope.roformer.checkpoints.tensor_files import as_safetensors
from paddle_rope.roformer.config import RoFormerConfig

WEIGHTS_FILE = "model.safetensors"
PREFIX = "roformer."  # of the encoder in a model with a head
# Standard deviations of initial weights in version 1; for a linear layer it is LINEAR_GAIN / sqrt(inputs)
EMBEDDING_DEVIATION = 0.02
LINEAR_GAIN = 0.5
MOST_NEW_NUMBERS = 2**28  # of weights that a folder lacks: 1 GB
_SMALL = 2**22  # numbers in a square matrix that fits into any memory
_Model = TypeVar("_Model", bound="RoFormerPretrainedModel")

logger = logging.getLogger(__name__)


class RoFormerPretrainedModel(nn.Layer):
    """Base of all models. A subclass calls :meth:`init_weights` at the end of its ``__init__``.

    Example:
        >>> import tempfile
        >>> from paddle_rope import RoFormerModel
        >>> config = RoFormerConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     RoFormerModel(config).save_pretrained(folder)
        ...     model = RoFormerModel.from_pretrained(folder, attention="linear")
        >>> model.config.attention
        'linear'
    """

    config_class: ClassVar[type[RoFormerConfig]] = RoFormerConfig

    def __init__(self, config: RoFormerConfig) -> None:
        if not isinstance(config, self.config_class):
            expected = self.config_class.__name__
            raise TypeError(f"{type(self).__name__} takes a {expected}, got {type(config).__name__}")
        super().__init__()
        self.config = config

    @classmethod
    def from_pretrained(cls: type[_Model], folder: str | os.PathLike, **changes: Any) -> _Model:
        """A model in evaluation mode with the weights of a folder on this machine, or of an encoder that comes with the
        package (``"small"``); nothing is downloaded. Call ``train()`` before you train it.

        The folder is one of this library (any of its models), or holds a RoFormer, BERT, ELECTRA or ERNIE of Hugging
        Face or PaddleNLP, or PaddleNLP's RoFormerV2: ``config.json`` and ``model.safetensors``, ``pytorch_model.bin``
        or ``model_state.pdparams``, or the index of their parts. Pickled files may hold only tensors. ``changes`` are
        options that differ from the folder's: you can load a softmax checkpoint as a linear model, or a masked language
        model as a classifier. Weights that the folder lacks keep their initial values; the logger ``paddle_rope`` names
        them and any weights that the model has no place for, as a warning if some of them are in the encoder.

        Raises ValueError if a file cannot be read or holds another kind of model or an unsupported option, or weights
        are not finite or do not fit.
        """
        return build_model(cls, read_checkpoint(folder), folder, **changes)

    def save_pretrained(self, folder: str | os.PathLike) -> None:
        """Write ``config.json``, and ``model.safetensors`` with weights in their dtypes, into ``folder``, which is made
        if it is missing."""
        self.config.save_pretrained(folder, architecture=type(self).__name__)
        replace_file(Path(folder) / WEIGHTS_FILE, as_safetensors(self.state_dict()))

    def init_weights(self) -> None:
        """Initialize the layers that no inner model has initialized yet."""

        def init_once(layer):
            if not getattr(layer, "_is_initialized", False):
                self._init_weights(layer)
                layer._is_initialized = True

        self.apply(init_once)

    def _init_weights(self, layer):
        """Draw normal weights for linear and embedding layers; biases stay 0.

        In version 1, the standard deviation is 0.02 for an embedding and 0.5 / sqrt(inputs) for a linear layer. For 768
        inputs that is about BERT's 0.02; in narrow models, 0.02 leaves the products of attention, feed-forward layers
        and span heads so close to 0 that training hardly starts. In version 2 it is 1 / sqrt(size * layers), where size
        is the number of inputs of a linear layer or the columns of an embedding (bert4keras, RoFormerV2).
        """
        if not isinstance(layer, (nn.Linear, nn.Embedding)) or not layer.weight._is_initialized():  # in shapes_only()
            return
        is_linear = isinstance(layer, nn.Linear)
        size = layer.weight.shape[0 if is_linear else 1]
        deviation = LINEAR_GAIN * size**-0.5 if is_linear else EMBEDDING_DEVIATION
        if self.config.version == 2:
            deviation = (size * self.config.num_hidden_layers) ** -0.5
        layer.weight.set_value(paddle.normal(std=deviation, shape=layer.weight.shape).astype(layer.weight.dtype))


def build_model(model_class: type[_Model], checkpoint: Checkpoint, where: object, **changes: Any) -> _Model:
    """A model in evaluation mode with the weights of a checkpoint, as in
    :meth:`RoFormerPretrainedModel.from_pretrained`; ``where`` is its folder, for messages. The encoder's weights may
    have the prefix ``roformer.`` or not. Raises ValueError, before memory is allocated, if something does not fit.
    """
    tensors = checkpoint.tensors
    try:
        config = model_class.config_class.from_dict(checkpoint.config, **changes)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    broken = [checkpoint.sources[name] for name, array in tensors.items() if not np.isfinite(array).all()]
    if broken:
        raise ValueError(f"{where}: has weights that are NaN or infinite{listed(': ', broken)}; copy the folder again")
    placed = _places(model_class, config, checkpoint, where)
    model = model_class(config)
    state = model.state_dict()
    for name, source in placed.items():
        state[name].set_value(paddle.to_tensor(tensors[source], dtype=state[name].dtype))
    new = [name for name in state if name not in placed]
    unplaced = set(tensors) - set(placed.values())
    unused = sorted([checkpoint.sources[name] for name in unplaced] + checkpoint.unused)
    reports = {"new, as initialized": (new, new, state), "in the folder, but not used": (unused, unplaced, tensors)}
    for what, (names, ours, among) in reports.items():
        if names:  # the caller expects another head, but perhaps no other weights of the encoder
            level = logging.WARNING if _has_encoder(ours, among) else logging.INFO
            logger.log(level, "%s from %s: %s: %s", model_class.__name__, where, what, _summary(names))
    model.eval()
    return model


def _has_encoder(names, among):
    """Whether some of the names are of the encoder, whose weights have a prefix if there is a head ``among`` them."""
    has_head = any(name.startswith(PREFIX) for name in among)
    return any(name.startswith(PREFIX) or not has_head for name in names)


def _places(model_class, config, checkpoint, where):
    """``{name in the model: name in the checkpoint}``, without memory for a model; errors as in :func:`build_model`."""
    tensors = checkpoint.tensors
    numbers = sum(array.size for array in tensors.values())
    if config.hidden_size**2 > max(numbers, _SMALL):
        raise ValueError(f"{where}: holds {numbers:,} numbers, too few for hidden_size {config.hidden_size}")
    with shapes_only():
        shapes = {name: list(weight.shape) for name, weight in model_class(config).state_dict().items()}
    names = {name.removeprefix(PREFIX): name for name in shapes}
    placed = {names[bare]: name for name in tensors if (bare := name.removeprefix(PREFIX)) in names}
    wrong = [
        f"{checkpoint.sources[source]} is {list(tensors[source].shape)} there and {shapes[name]} in the model"
        for name, source in placed.items()
        if list(tensors[source].shape) != shapes[name]
    ]
    if wrong:
        raise ValueError(f"{where}: its weights do not fit the model{listed(': ', wrong)}")
    if names["token_embedding.weight"] not in placed:
        raise ValueError(f"{where}: holds no weights of a RoFormer of this library")
    new = sum(math.prod(shape) for name, shape in shapes.items() if name not in placed)
    if new > MOST_NEW_NUMBERS:
        raise ValueError(f"{where}: lacks weights of {new:,} numbers that its configuration needs")
    return placed


def _summary(names):
    """The names in their order; names that differ only in the layer number are counted together."""
    counts = Counter(re.sub(r"([._/])\d+(?=[./])", r"\1*", name) for name in names)
    return ", ".join(f"{name} ({count})" if "*" in name else name for name, count in counts.items())
