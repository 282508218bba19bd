"""Exported models. Without paddle for ONNX."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from paddle_rope.roformer import load_tokenizer
from tasks.common.errors import is_out_of_memory
from tasks.common.export.folder import ONNX, check_folder, format_of, read_config
from tasks.common.inference import Batch
from tasks.common.model_folder import check_vocabulary, damage_reported


class ExportedModel:
    """The graph of an exported folder, and what prediction needs of its config.json.

    Args:
        folder: checked by :func:`~tasks.common.export.folder.check_folder`.
        device: as of the predictors.

    Attributes:
        kinds: the keys of config.json that are read, and their kinds; of a subclass.
        defaults: the values of keys that folders of earlier versions lack.
        config: these keys as attributes.
        graph: :class:`~tasks.common.export.onnx_graph.OnnxGraph` or
            :class:`~tasks.common.export.paddle_graph.PaddleGraph`.

    Raises:
        InputError: the configuration or the graph cannot be read, or the device not used.
    """

    kinds: ClassVar[dict[str, Any]]
    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, folder: str | os.PathLike, device: str | None = None):
        self._folder = folder
        self.config = read_config(folder, {"vocab_size": int, **self.kinds}, self.defaults)
        with damage_reported(folder, "config.json", "the exported folder"):
            self.check()
        if format_of(folder) == ONNX:
            from tasks.common.export.onnx_graph import OnnxGraph

            self.graph = OnnxGraph(folder, device)
        else:
            from tasks.common.export.paddle_graph import PaddleGraph

            self.graph = PaddleGraph(folder, device)

    def check(self) -> None:
        """Raise ValueError unless the values of ``config`` fit together."""

    def run(
        self, batch: Batch, shape: tuple[int | None, ...], outputs: Sequence[str] | None = None
    ) -> list[np.ndarray]:
        """Outputs of the graph for a batch.

        Args:
            batch: of which it takes the inputs that it has.
            shape: that the first output has to have by the configuration, None where there is any number.
            outputs: their names; only an ONNX graph takes them.

        Raises:
            InputError: the graph cannot be computed, or does not fit the configuration.
        """
        with damage_reported(self._folder, "the graph", "the exported folder", is_out_of_memory):
            found = self.graph.run(batch) if outputs is None else self.graph.run(batch, outputs)
            given = found[0].shape
            if len(given) != len(shape) or any(size not in (None, one) for size, one in zip(shape, given)):
                raise ValueError(f"its output is {list(given)} in place of {list(shape)}")
        return found


def open_exported(folder: str | os.PathLike, device: str | None, model_class: type[ExportedModel]) -> tuple[Any, Any]:
    """(tokenizer, model) of an exported folder; raises InputError if it is damaged or the device cannot be used."""
    check_folder(folder)
    with damage_reported(folder, "vocab.txt or tokenizer_config.json", "the exported folder"):
        tokenizer = load_tokenizer(folder)
    model = model_class(folder, device)
    check_vocabulary(folder, tokenizer, model)
    return tokenizer, model
