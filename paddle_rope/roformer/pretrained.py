"""Base of the models: initial weights, loading from a folder and saving to one."""

import os
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import paddle
from paddle import nn
from safetensors.numpy import save

from paddle_rope.roformer.checkpoints.loading import build_model
from paddle_rope.roformer.checkpoints.reading import read_checkpoint
from paddle_rope.roformer.config import RoFormerConfig

WEIGHTS_FILE = "model.safetensors"
# Standard deviation of initial weights of version 1; a linear layer's is the gain over sqrt(inputs)
EMBEDDING_DEVIATION = 0.02
LINEAR_GAIN = 0.5
_Model = TypeVar("_Model", bound="RoFormerPretrainedModel")


class RoFormerPretrainedModel(nn.Layer):
    """Base of all models: initial weights, loading and saving.

    A subclass calls :meth:`init_weights` at the end of its ``__init__``.

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
        """Build a model with the weights of a folder on this machine; nothing is downloaded.

        The folder is one of this library (any of its models), of Hugging Face's RoFormer, or of PaddleNLP's RoFormer or
        RoFormerV2. Weights that the folder lacks stay as they are initialized and are named in a warning of the logger
        ``paddle_rope``, as are those in the folder that the model has no place for: so a softmax checkpoint becomes a
        linear model, a masked language model a classifier.

        Args:
            folder: with ``config.json`` and ``model.safetensors``, ``pytorch_model.bin`` or ``model_state.pdparams`` or
                the index of their parts. Of pickled files only tensors are admitted.
            changes: options of the configuration that differ from the folder's, such as ``attention="linear"``.

        Returns:
            The model, in training mode and float32.

        Raises:
            ValueError: the folder or a file cannot be read, holds another kind of model or options that are not
                supported, or weights are missing, ill-shaped or left over in the encoder.
        """
        return build_model(cls, read_checkpoint(folder), folder, **changes)

    def save_pretrained(self, folder: str | os.PathLike) -> None:
        """Write ``config.json`` and ``model.safetensors`` into ``folder``, which is made if it is missing."""
        self.config.save_pretrained(folder, architecture=type(self).__name__)
        state = {name: tensor.numpy() for name, tensor in self.state_dict().items()}
        (Path(folder) / WEIGHTS_FILE).write_bytes(save(state, metadata={"format": "np"}))

    def init_weights(self) -> None:
        """Initialize the layers that no model inside has initialized yet."""
        self.apply(self._init_once)

    def _init_once(self, layer):
        if not getattr(layer, "_is_initialized", False):
            self._init_weights(layer)
            layer._is_initialized = True

    def _init_weights(self, layer):
        """Normal weights for linear and embedding layers; biases stay 0.

        The standard deviation of version 1 is 0.02 of an embedding and 0.5 / sqrt(inputs) of a linear layer. For 768
        inputs that is about BERT's 0.02; in narrow models 0.02 leaves the products of attention, feed-forward layers
        and span heads so near to 0 that training hardly starts. In version 2 it is 1 / sqrt(size * layers), where size
        is the number of inputs of a linear layer or the columns of an embedding (bert4keras, RoFormerV2).
        """
        if not isinstance(layer, (nn.Linear, nn.Embedding)) or not layer.weight._is_initialized():  # in a LazyGuard
            return
        is_linear = isinstance(layer, nn.Linear)
        size = layer.weight.shape[0 if is_linear else 1]
        deviation = LINEAR_GAIN * size**-0.5 if is_linear else EMBEDDING_DEVIATION
        if self.config.version == 2:
            deviation = (size * self.config.num_hidden_layers) ** -0.5
        layer.weight.set_value(paddle.normal(std=deviation, shape=layer.weight.shape).astype(layer.weight.dtype))
