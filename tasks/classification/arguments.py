"""Configuration keys of the classification recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from tasks.common.training.arguments import POSITIVE, RecipeArguments, one_of, option

POOLINGS = ("mean", "first")


@dataclass
class ClassificationArguments(RecipeArguments):
    """Keys of the classification recipe: those of every recipe and its own."""

    METRIC = "accuracy"
    HYPER_PARAMETERS = (*RecipeArguments.HYPER_PARAMETERS, "pooling")
    # documents are fewer than sentences
    DEFAULTS = {"num_train_epochs": 10, "per_device_train_batch_size": 16, "learning_rate": 5e-4}
    RENAMED = {"max_length": "max_characters"}

    recipe: str = option("classification", "what is trained")
    train_file: Optional[str] = option(None, "labeled texts, JSON Lines or tab-separated")
    max_characters: int = option(512, "characters of a text that are read; the rest is cut")
    pooling: str = option("mean", "`mean` of the tokens, or the `first` token")

    def ranges(self):
        return {**super().ranges(), "max_characters": POSITIVE, "pooling": one_of(POOLINGS)}
