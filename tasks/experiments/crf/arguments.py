"""Configuration keys of the CRF: defaults, types and ranges."""

from dataclasses import dataclass, fields

from paddle_rope.options import NOT_NEGATIVE, POSITIVE
from paddle_rope.tasks.common.training.arguments import BY_EPOCHS, TrainingPlan, option
from paddle_rope.tasks.common.training.settings import DOCUMENTED
from paddle_rope.tasks.ner.arguments import NerArguments

BY_LBFGS = TrainingPlan(
    BY_EPOCHS.fixed,
    (*BY_EPOCHS.closed, *DOCUMENTED.keys() - {"output_dir", "device", "seed"}),
    "a CRF is trained by L-BFGS on all texts at once",
)
OF_NER = {"recipe", "train_file", "dev_file", "test_file", "dev_fraction", "dev_split", "train_texts", "features"}


@dataclass
class CrfArguments(NerArguments):
    """Keys of the CRF: files, training texts and word features as in the NER recipe, and its own."""

    PLAN = BY_LBFGS
    UNUSED = tuple({one.name for one in fields(NerArguments)} - OF_NER)
    WHY_UNUSED = "a CRF has no encoder"

    recipe: str = option("crf", "what is trained")
    c1: float = option(0.1, "penalty on the sum of the absolute weights", NOT_NEGATIVE)
    c2: float = option(0.1, "penalty on the sum of the squared weights", NOT_NEGATIVE)
    max_iterations: int = option(100, "iterations of L-BFGS at most", POSITIVE)
