"""Configuration keys of the CRF: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Optional

from paddle_rope.options import NOT_NEGATIVE, POSITIVE
from tasks.common.errors import InputError
from tasks.common.training.arguments import EncoderArguments, RecipeArguments, option
from tasks.common.training.paddlenlp_keys import DOCUMENTED
from tasks.common.training.plans import BY_EPOCHS, TrainingPlan
from tasks.ner.arguments import OF_FEATURES
from tasks.ner.features import FEATURE_KINDS

# Keys that recipes with an encoder have and that mean nothing here.
UNUSED = {*(one.name for one in fields(EncoderArguments)), "keep_best", "ema_decay", "early_stopping_patience"} - {
    "recipe", "dev_fraction",
}  # fmt: skip
BY_LBFGS = TrainingPlan(
    {},
    BY_EPOCHS.fixed,
    (*BY_EPOCHS.closed, *DOCUMENTED.keys() - {"output_dir", "device", "seed"}),
    "a CRF is trained by L-BFGS on all texts at once",
)


@dataclass
class CrfArguments(RecipeArguments):
    """Keys of the CRF: files, training texts and word features as in the NER recipe, and its own."""

    METRIC = "f1"
    PLAN = BY_LBFGS

    recipe: str = option("crf", "what is trained")
    train_texts: Optional[int] = option(
        None, "take so many texts of `train_file` only, drawn with the seed; empty: all", POSITIVE
    )
    features: Optional[list[str]] = option(
        None, f"word features, separated by commas: {', '.join(FEATURE_KINDS)}", OF_FEATURES
    )
    c1: float = option(0.1, "penalty on the sum of the absolute weights", NOT_NEGATIVE)
    c2: float = option(0.1, "penalty on the sum of the squared weights", NOT_NEGATIVE)
    max_iterations: int = option(100, "iterations of L-BFGS at most", POSITIVE)

    def check(self, config):
        for key in config:
            if key in UNUSED and config[key] is not None:
                raise InputError(f"key {key!r}: a CRF has no encoder; leave it out")

    def unused_keys(self):
        return UNUSED
