"""Configuration keys of the matching recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from paddle_rope.options import POSITIVE, Kind
from tasks.common.errors import InputError
from tasks.common.training.arguments import RecipeArguments, model_option, option
from tasks.matching.config import MatchingConfig

MOST_FOLDS = 1000
FOLDS = Kind(f"from 2 to {MOST_FOLDS}", lambda value: 2 <= value <= MOST_FOLDS)


@dataclass
class MatchingArguments(RecipeArguments):
    """Keys of the matching recipe: those of every recipe and its own."""

    METRIC = "score"  # see tasks.matching.evaluation.choosing_score
    HYPER_PARAMETERS = (*RecipeArguments.HYPER_PARAMETERS, "architecture")
    DEFAULTS = {"num_train_epochs": 5}
    RENAMED = {"max_length": "max_tokens", "segment_ids": "token_type_ids"}

    recipe: str = option("matching", "what is trained")
    train_file: Optional[str] = option(None, "labeled pairs or triples of texts")
    max_tokens: int = model_option(MatchingConfig, "max_tokens")
    architecture: str = model_option(MatchingConfig, "architecture")
    pooling: str = model_option(MatchingConfig, "pooling")
    token_type_ids: bool = model_option(MatchingConfig, "token_type_ids")
    scale: float = model_option(MatchingConfig, "scale")
    folds: Optional[int] = option(None, "cut `train_file` into so many folds, test on each", FOLDS)
    fold: Optional[int] = option(None, "test on this fold only, counted from 1", POSITIVE)

    def check(self, config):
        if self.fold is not None and not (self.folds and self.fold <= self.folds):
            raise InputError(
                f"configuration: fold must be from 1 to folds, got {self.fold} of {self.folds or 'no'} folds"
            )
        if self.folds and (self.dev_file or self.test_file):
            raise InputError(
                "configuration: with folds dev and test are parts of train_file; leave dev_file and test_file out"
            )
