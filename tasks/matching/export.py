"""How models of text matching are exported."""

from __future__ import annotations

from typing import Any

import numpy as np
from paddle import nn
from paddle.static import InputSpec

from tasks.common.export.exporter import Exporter
from tasks.matching.recipe import MatchingRecipe

CHECKED_PAIRS = [("花呗可以分期吗", "花呗如何分期还款"), ("我的银行卡丢了怎么办", "好")]


class Representation(nn.Layer):
    """A matching model that returns the vectors of sequences, or the logits of pairs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        """See :meth:`tasks.matching.model.MatchingModel.represent`."""
        return self.model.represent(input_ids, attention_mask, token_type_ids).astype("float32")


class MatchingExporter(Exporter):
    """Bi-encoders, with the vectors of texts as output, and cross-encoders, with the logits of pairs."""

    recipe = MatchingRecipe
    output = "representations"

    def layer(self, model: Any) -> nn.Layer:
        return Representation(model)

    def inputs(self, config: Any) -> list[InputSpec | None]:
        types = InputSpec([None, None], "int64", "token_type_ids") if config.token_type_ids else None
        return [*super().inputs(config), types]

    def scores(self, predictor: Any) -> np.ndarray:
        return predictor.score(CHECKED_PAIRS)

    def describe(self, config: Any) -> dict[str, str]:
        found = "how well two texts match" if config.is_cross_encoder else "vectors of texts; their products are scores"
        return {
            "finds": found,
            "architecture": config.architecture,
            "trained on": config.task,
            "language": "Chinese",
            "longest sequence": f"{config.max_tokens} tokens",
        }
