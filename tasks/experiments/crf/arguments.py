"""Configuration keys of the CRF: defaults, types and ranges."""

from dataclasses import dataclass, fields
from typing import Optional

from paddle_rope.options import NOT_NEGATIVE, POSITIVE
from tasks.common.training.arguments import BY_EPOCHS, EncoderArguments, RecipeArguments, TrainingPlan, option
from tasks.common.training.settings import DOCUMENTED
from tasks.ner.arguments import OF_FEATURES
from tasks.ner.features import FEATURE_KINDS

BY_LBFGS = TrainingPlan(
    BY_EPOCHS.fixed,
    (*BY_EPOCHS.closed, *DOCUMENTED.keys() - {"output_dir", "device", "seed"}),
    "a CRF is trained by L-BFGS on all texts at once",
)


@dataclass
class CrfArguments(RecipeArguments):
    """Keys of the CRF: files, training texts and word features as in the NER recipe, and its own."""

    METRIC = "f1"
    PLAN = BY_LBFGS
    UNUSED = tuple(
        {*(one.name for one in fields(EncoderArguments)), "keep_best", "ema_decay", "early_stopping_patience"}
        - {"recipe", "dev_fraction"}
    )
    WHY_UNUSED = "a CRF has no encoder"

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
