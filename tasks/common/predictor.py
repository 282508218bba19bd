"""The base class of all predictors, which opens the folder of a trained or exported model. Paddle is imported only for
a trained model, or one exported for Paddle Inference."""

import os
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from paddle_rope.machine import import_paddle
from paddle_rope.tasks.common.errors import InputError, as_input_error
from paddle_rope.tasks.common.export.model import ExportedModel
from paddle_rope.tasks.common.files import json_line
from paddle_rope.tasks.common.model_folder import (
    EXPORTED_FILES,
    is_exported,
    load_model,
    load_settings,
    refuse_changed,
    refuse_incomplete,
    refuse_other_recipe,
)
from paddle_rope.tasks.common.prediction_options import PredictorOptions
from paddle_rope.tasks.common.process import bfloat16_pays, choose_device
from paddle_rope.tasks.common.texts.json_records import TEXT_KEYS
from paddle_rope.tasks.common.texts.streams import TextStream
from paddle_rope.tasks.common.training.arguments import EncoderArguments
from paddle_rope.tasks.common.training.data import LabeledData

Folder = str | os.PathLike


class Predictor:
    """A model for prediction. Threads may share it. A subclass adds what its recipe predicts.

    Args:
        model_dir: folder that training wrote as ``OUTPUT_DIR/model``, or folder of an exported model.
        device, batch_size, options: the fields of ``options_class``; ``bf16`` as in :func:`predict_in_bfloat16`.
        show_progress: show a progress bar.

    Raises:
        InputError: the folder does not hold a model of this recipe, the device cannot be used or has no bfloat16, or
            an option is out of range.
    """

    arguments: ClassVar[type[EncoderArguments]]  # of the recipe: its name, its scores, and the class of trained models
    labeled: ClassVar[LabeledData]
    config_class: ClassVar[Any]  # of both kinds of models
    options_class: ClassVar[type[PredictorOptions]]
    exported_class: ClassVar[type[ExportedModel]] = ExportedModel

    def __init__(
        self,
        model_dir: Any,
        device: str | None = None,
        batch_size: int = 32,
        show_progress: bool = False,
        **options: Any,
    ) -> None:
        with as_input_error("--"):
            self.options: Any = self.options_class(device=device, batch_size=batch_size, **options)
        self.model_dir, self.batch_size, self.show_progress = model_dir, batch_size, show_progress
        self.tokenizer, self.model = self._open(model_dir, device)
        if self.options.bf16:
            predict_in_bfloat16(self.model)

    def evaluate(self, examples: list, title: str) -> dict[str, Any]:
        """Score the predictions for labeled examples, print the scores under a title and return them."""
        raise NotImplementedError

    # ---- from a stream of texts to a stream of results

    @classmethod
    def stream(cls, source: str | os.PathLike, chunk_items: int, **reading: Any) -> TextStream:
        """The items of a file to predict, in chunks of (item, "path:line"); ``reading`` are options such as
        ``fields``."""
        return TextStream(source, chunk_items, TEXT_KEYS)

    def answer(self, items: Sequence[Any], where: Sequence[str]) -> list[dict[str, Any]]:
        """The result of each item; messages name its place."""
        return self(items)  # type: ignore[operator]

    @property
    def long_texts(self) -> tuple[int | None, str]:
        """Characters above which texts are not read whole, None for any, and what happens to longer ones."""
        return None, ""

    def written(self, predicted: Iterable[tuple[dict, str]], format: str | None, name: str) -> Iterator[str]:
        """The content of a file of results, in pieces, from pairs of a result and its place; ``format`` is one of the
        recipe, ``name`` the model's."""
        return (json_line(record) for record, _ in predicted)

    def _open(self, folder: Folder, device: str | None) -> tuple[Any, Any]:
        """Check a folder and return its tokenizer and model."""
        refuse_other_recipe(folder, str(self.arguments.recipe))
        refuse_changed(folder)
        if is_exported(folder):
            refuse_incomplete(folder, EXPORTED_FILES)
            tokenizer, config = load_settings(folder, self.config_class)
            return tokenizer, self.exported_class(folder, config, device)
        refuse_incomplete(folder)
        import_paddle()
        choose_device(device)
        return load_model(Path(folder), pkgutil.resolve_name(self.arguments.MODEL))


def check_positions(option: str, value: int | None, config: Any, special_tokens: int = 2) -> None:
    """Raise InputError if the value of a command's option, to which ``special_tokens`` are added, is more than a model
    has learned positions."""
    most = config.most_tokens - special_tokens
    if value is not None and value > most:
        raise InputError(f"--{option} {value}: learned positions end at {config.most_tokens}; give at most {most}")


def predict_in_bfloat16(model: Any) -> None:
    """Let a model multiply in bfloat16 from now on (:func:`paddle_rope.tasks.common.inference.evaluated`); if float32
    is faster here, only print a note. Raises InputError if the model is exported, or the device is not a CPU with
    bfloat16."""
    if isinstance(model, ExportedModel):
        raise InputError("--bf16: an exported model computes as it was exported; give the model it was exported from")
    import paddle

    from paddle_rope.layers import Linear
    from paddle_rope.native.products import bfloat16_products, rounded, why_no_bfloat16

    if paddle.get_device() != "cpu":
        raise InputError("--bf16 is for models on a CPU; leave it out")
    why = why_no_bfloat16()
    if why is not None:
        raise InputError(f"--bf16 cannot be used on this CPU: {why}; leave it out")
    if bfloat16_pays():
        model.precision = bfloat16_products
        for layer in model.sublayers():
            if isinstance(layer, Linear):
                layer.weight.rounded = rounded(layer.weight)  # once, as it no longer changes
