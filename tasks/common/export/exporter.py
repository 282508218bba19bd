"""Export of trained models into one folder that holds all that prediction needs."""

from __future__ import annotations

import contextlib
import functools
import io
import os
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from paddle.static import InputSpec

from tasks.common.errors import InputError
from tasks.common.export.folder import ONNX, is_exported, write_checksums
from tasks.common.export.graphs import check_onnx_packages, write_onnx_graph, write_paddle_graph
from tasks.common.files import atomic_folder, check_new_folder

TOLERANCE = 1e-3  # of a score; rounding in another order makes some 1e-5
Folder = str | os.PathLike


class Exported(NamedTuple):
    """The result of an export."""

    difference: float  # the largest between the scores of the exported and of the trained model, on some texts
    scores: dict[str, dict[str, Any]]  # of ``trained`` and ``exported`` on the labeled file, if one was given
    limits: list[str]  # lines that say what the exported folder cannot do


class Exporter:
    """How models of a recipe are exported; a subclass says what differs from recipe to recipe."""

    recipe: ClassVar[type]
    output: ClassVar[str]  # name of the graph's first output
    several: ClassVar[bool] = False  # whether several models can become one

    def save(self, predictor: Any, folder: Path) -> None:
        """Write further files that prediction needs, after configuration and tokenizer."""

    def inputs(self, config: Any) -> list[InputSpec | None]:
        """The inputs of the graph: the arguments of the model's ``forward`` in their order, None for those left out. By
        default token ids and their mask."""
        return [InputSpec([None, None], "int64", "input_ids"), InputSpec([None, None], "bool", "attention_mask")]

    def finish(self, model: Any, config: Any) -> None:
        """Add nodes to an ``onnx.ModelProto``."""

    def exact(self, model: Any) -> list[str]:
        """Names of the weights that stay float32 in an int8 graph."""
        return []

    def scores(self, predictor: Any) -> np.ndarray:
        """Scores of some texts, which the exported model must reproduce."""
        raise NotImplementedError

    def limits(self, config: Any) -> list[str]:
        """Lines that say what the exported folder cannot do."""
        return []

    def write_graph(self, model: Any, folder: Path, format: str, quantize: bool = False) -> None:
        """Write the graph of a model, which can be neither trained nor called afterwards."""
        graph = model, self.inputs(model.config), folder
        if format == ONNX:
            finish = functools.partial(self.finish, config=model.config)
            write_onnx_graph(*graph, self.output, finish, quantize, self.exact(model))
        else:
            write_paddle_graph(*graph)


def export(
    exporter: Exporter,
    model_dirs: list[Folder],
    output_dir: Folder,
    format: str = ONNX,
    quantize: str | None = None,
    check: str | None = None,
) -> Exported:
    """Write a trained model, or an ensemble of several, as a folder that predictors open.

    Args:
        exporter, model_dirs: of the models' recipe; folders OUTPUT_DIR/model of training runs.
        output_dir: folder to make.
        format: ``"onnx"``, or ``"paddle"`` for Paddle Inference.
        quantize: ``"int8"`` for weights of 8 bits, only in ONNX; None for 32 bits.
        check: labeled file on which the trained and the exported model are scored.

    Raises:
        InputError: a folder does not hold a trained model, several do not fit together, ``output_dir`` cannot be made,
            or the scores of the exported model differ.
    """
    recipe = exporter.recipe()
    check_new_folder(output_dir)
    for folder in model_dirs:
        if is_exported(folder):
            raise InputError(f"{folder}: is already exported; give the folder OUTPUT_DIR/model of the training run")
    if len(model_dirs) > 1 and not exporter.several:
        raise InputError(f"{len(model_dirs)} models are given; {recipe.name} exports one at a time")
    if quantize and format != ONNX:
        raise InputError(f"--quantize {quantize} is for --format onnx; leave one of them out")
    examples = recipe.read_labeled(check) if check else None
    trained = recipe.predictor(list(model_dirs) if exporter.several else model_dirs[0], device="cpu")
    if format == ONNX:
        check_onnx_packages()
    expected, scores = exporter.scores(trained), {}
    if examples:
        scores["trained"] = _scores(recipe, trained, examples)
    config = trained.model.config
    with atomic_folder(output_dir) as folder:
        config.save_pretrained(str(folder))
        trained.tokenizer.save_pretrained(folder)
        exporter.save(trained, folder)
        exporter.write_graph(trained.model, folder, format, bool(quantize))
        write_checksums(folder)
        exported = recipe.predictor(folder, device="cpu")
        difference = float(np.abs(exporter.scores(exported) - expected).max())
        if not difference <= (np.inf if quantize else TOLERANCE):
            raise InputError(
                f"{output_dir}: not written, as the exported model's scores differ from the trained one's by "
                f"{difference:.2g}; please report this, with config.json of the model"
            )
        if examples:
            scores["exported"] = _scores(recipe, exported, examples)
    return Exported(difference, scores, exporter.limits(config))


def _scores(recipe, predictor, examples):
    """The recipe's scores of a predictor, computed without printing them."""
    with contextlib.redirect_stdout(io.StringIO()):
        scores = recipe.evaluate_predictor(predictor, examples, "")
    return {name: scores[name] for name in recipe.scores if name in scores}
