"""Configuration keys of the classification recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from tasks.classification.config import ClassificationConfig
from tasks.common.training.arguments import RecipeArguments, model_option, option


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
    max_characters: int = model_option(ClassificationConfig, "max_characters")
    pooling: str = model_option(ClassificationConfig, "pooling")
