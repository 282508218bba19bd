"""Configuration keys of the classification recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from tasks.common.training import arguments as common
from tasks.common.training.arguments import RecipeArguments, one_of

METRIC = "accuracy"  # of dev, chooses the epoch
POOLINGS = ("mean", "first")
# Keys of TrainingArguments for documents, of which there are fewer than sentences.
DEFAULTS = {"num_train_epochs": 10, "per_device_train_batch_size": 16, "learning_rate": 5e-4}


@dataclass
class ClassificationArguments(RecipeArguments):
    """Keys of the classification recipe: those of every recipe and its own."""

    train_file: Optional[str] = field(default=None, metadata={"help": "labeled texts, JSON Lines or tab-separated"})
    max_length: int = field(default=512, metadata={"help": "characters of a text that are read; the rest is cut"})
    pooling: str = field(default="mean", metadata={"help": "`mean` of the tokens, or the `first` token"})

    def ranges(self):
        return {**super().ranges(), "pooling": one_of(POOLINGS)}


def resolve_config(config):
    """As :func:`tasks.common.training.arguments.resolve_config`, with :class:`ClassificationArguments`."""
    return common.resolve_config(config, ClassificationArguments, METRIC, DEFAULTS)
