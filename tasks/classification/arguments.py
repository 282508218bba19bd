"""Configuration keys of the classification recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from tasks.common.training.arguments import POSITIVE, RecipeArguments, one_of

POOLINGS = ("mean", "first")


@dataclass
class ClassificationArguments(RecipeArguments):
    """Keys of the classification recipe: those of every recipe and its own."""

    METRIC = "accuracy"
    # documents are fewer than sentences
    DEFAULTS = {"num_train_epochs": 10, "per_device_train_batch_size": 16, "learning_rate": 5e-4}
    RENAMED = {"max_length": "max_characters"}

    train_file: Optional[str] = field(default=None, metadata={"help": "labelled texts: JSON lines or text<TAB>label"})
    max_characters: int = field(default=512, metadata={"help": "characters of a text that are read; the rest is cut"})
    pooling: str = field(default="mean", metadata={"help": "mean over the tokens, or the first token"})

    def ranges(self):
        return {**super().ranges(), "max_characters": POSITIVE, "pooling": one_of(POOLINGS)}
