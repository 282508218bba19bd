"""Exported models. Imports paddle only for a graph of Paddle Inference."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tasks.common.errors import is_out_of_memory
from tasks.common.export.folder import EXPORTED_FOLDER, ONNX, check_folder, format_of
from tasks.common.inference import Batch
from tasks.common.model_folder import damage_reported, load_settings


class ExportedModel:
    """The graph of an exported folder. A subclass computes with it what the trained model of its recipe computes.

    Args:
        folder: checked by :func:`~tasks.common.export.folder.check_folder`.
        config: configuration of the trained model.
        device: as of the predictors.

    Attributes:
        config_class: class of the configuration, which checks what the folder's config.json holds.
        graph: :class:`~tasks.common.export.onnx_graph.OnnxGraph` or
            :class:`~tasks.common.export.paddle_graph.PaddleGraph`.

    Raises:
        InputError: the graph cannot be read, or the device cannot be used.
    """

    config_class: ClassVar[Any]

    def __init__(self, folder: str | os.PathLike, config: Any, device: str | None = None):
        self.config = config
        self._folder = folder
        if format_of(folder) == ONNX:
            from tasks.common.export.onnx_graph import OnnxGraph

            self.graph = OnnxGraph(folder, device)
        else:
            from tasks.common.export.paddle_graph import PaddleGraph

            self.graph = PaddleGraph(folder, device)

    def output(self, batch: Batch) -> np.ndarray:
        """The output of a graph that has one, for a batch."""
        return self.run(batch, (len(batch["input_ids"]), *self.config.output_shape))[0]

    def run(
        self, batch: Batch, shape: tuple[int | None, ...], outputs: Sequence[str] | None = None
    ) -> list[np.ndarray]:
        """Compute outputs of the graph for a batch.

        Args:
            batch: the graph takes the inputs that it has.
            shape: shape that the first output must have by the configuration; None for any size.
            outputs: their names, only for an ONNX graph.

        Raises:
            InputError: the graph cannot be computed, or does not fit the configuration.
        """
        with damage_reported(self._folder, "the graph", EXPORTED_FOLDER, is_out_of_memory):
            found = self.graph.run(batch) if outputs is None else self.graph.run(batch, outputs)
            given = found[0].shape
            if len(given) != len(shape) or any(size not in (None, one) for size, one in zip(shape, given)):
                raise ValueError(f"its output is {list(given)} in place of {list(shape)}")
        return found


def open_exported(folder: str | os.PathLike, device: str | None, model_class: type[ExportedModel]) -> tuple[Any, Any]:
    """The tokenizer and the model of an exported folder; raises InputError if it is damaged or the device cannot be
    used."""
    check_folder(folder)
    tokenizer, config = load_settings(folder, model_class.config_class, whole=EXPORTED_FOLDER)
    return tokenizer, model_class(folder, config, device)
