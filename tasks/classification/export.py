"""How classifiers are exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle.nn.functional as F
from paddle import nn

from tasks.classification.recipe import ClassificationRecipe
from tasks.common.export.exporter import Exporter

CHECKED_TEXTS = ["球队昨晚客场以三比一取胜，主教练对后防线的表现十分满意。", "新手机今天发布。", "好"]


class Probabilities(nn.Layer):
    """A classifier that returns probabilities of the classes instead of logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        """float32 ``[batch, classes]``."""
        return F.softmax(self.model(input_ids, attention_mask).astype("float32"), axis=-1)


class ClassificationExporter(Exporter):
    """Classifiers, with the probabilities of the classes as output."""

    recipe = ClassificationRecipe
    output = "probabilities"

    def layer(self, model: Any) -> nn.Layer:
        return Probabilities(model)

    def scores(self, predictor: Any) -> np.ndarray:
        return predictor.probabilities(CHECKED_TEXTS)

    def describe(self, config: Any) -> dict[str, str]:
        return {
            "finds": "the class of a text",
            "classes": ", ".join(config.classes),
            "language": "Chinese",
            "characters read": f"the first {config.max_characters}",
        }
