"""Configuration keys of the matching recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from tasks.common.errors import InputError
from tasks.common.training.arguments import POSITIVE, RecipeArguments, one_of, option

CROSS_ENCODER, BI_ENCODER = ARCHITECTURES = ("cross_encoder", "bi_encoder")
MOST_FOLDS = 1000
SHORTEST = 5  # tokens of a pair: a token of each text, [CLS] and twice [SEP]


@dataclass
class MatchingArguments(RecipeArguments):
    """Keys of the matching recipe: those of every recipe and its own."""

    METRIC = "score"  # see tasks.matching.metrics.choosing_score
    HYPER_PARAMETERS = (*RecipeArguments.HYPER_PARAMETERS, "architecture")
    DEFAULTS = {"num_train_epochs": 5}
    RENAMED = {"max_length": "max_tokens", "segment_ids": "token_type_ids"}

    recipe: str = option("matching", "what is trained")
    train_file: Optional[str] = option(None, "labeled pairs or triples of texts")
    max_tokens: int = option(512, "longest sequence in tokens; longer ones are cut")
    architecture: str = option(CROSS_ENCODER, " or ".join(ARCHITECTURES))
    pooling: str = option("mean", "`mean` of the tokens, or the `first` token")
    token_type_ids: bool = option(False, "token type 1 for the second text of a cross-encoder")
    scale: float = option(20.0, "factor of the cosines in a bi-encoder's losses")
    folds: Optional[int] = option(None, "cut `train_file` into so many folds, test on each")
    fold: Optional[int] = option(None, "test on this fold only, counted from 1")

    def ranges(self):
        return {
            **super().ranges(),
            "max_tokens": (lambda value: value >= SHORTEST, f"at least {SHORTEST}"),
            "architecture": one_of(ARCHITECTURES),
            "pooling": one_of(("mean", "first")),
            "scale": POSITIVE,
            "folds": (
                lambda value: value is None or 2 <= value <= MOST_FOLDS,
                f"from 2 to {MOST_FOLDS}",
            ),
            "fold": POSITIVE,
        }

    def model_options(self):
        """The options of a :class:`tasks.matching.model.MatchingConfig` beside those of the encoder."""
        keys = ("architecture", "pooling", "max_tokens", "token_type_ids", "scale")
        return {key: getattr(self, key) for key in keys}

    def check(self, config):
        if self.token_type_ids and self.architecture != CROSS_ENCODER:
            raise InputError(
                "configuration: token_type_ids tell the texts of a cross_encoder apart; leave token_type_ids out"
            )
        if self.fold is not None and not (self.folds and self.fold <= self.folds):
            raise InputError(
                f"configuration: fold must be from 1 to folds, got {self.fold} of {self.folds or 'no'} folds"
            )
        if self.folds and (self.dev_file or self.test_file):
            raise InputError(
                "configuration: with folds dev and test are parts of train_file; leave dev_file and test_file out"
            )
