"""The options of a matching model, and the keys of its recipe: each is declared once. Does not import Paddle."""

from dataclasses import dataclass
from typing import Any, ClassVar, Optional

from paddle_rope.options import (
    NUMBER,
    POOLINGS,
    POSITIVE,
    TRUTH,
    Kind,
    choice,
    integer,
    list_of,
    number,
    optional,
    shown,
)
from paddle_rope.options import option as model_field
from paddle_rope.roformer.config import SequenceClassificationConfig
from paddle_rope.tasks.common import prediction_options
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.prediction_options import PredictorOptions
from paddle_rope.tasks.common.training.arguments import RecipeArguments, model_option, option

# What is to be learned: whether two texts match, how much they do, which of two texts is closer to a third.
PAIRS, GRADES, TRIPLES = TASKS = ("pairs", "grades", "triples")
CROSS_ENCODER, BI_ENCODER = ARCHITECTURES = ("cross_encoder", "bi_encoder")
SHORTEST = 5  # tokens of a pair: one token of each text, [CLS] and two [SEP]
LENGTH = integer(SHORTEST, 10**9)
MOST_FOLDS = 1000
PAIR_KEYS, TRIPLE_KEYS = ("sentence1", "sentence2"), ("A", "B", "C")  # of JSON records
FOLDS = Kind(f"from 2 to {MOST_FOLDS}", lambda value: 2 <= value <= MOST_FOLDS)


@dataclass
class MatchingConfig(SequenceClassificationConfig):
    """A :class:`SequenceClassificationConfig` plus what is scored, and how."""

    architecture: str = model_field(
        CROSS_ENCODER,
        "`cross_encoder` reads both texts as one sequence; `bi_encoder` encodes each, and their cosine is the score",
        choice(*ARCHITECTURES),
    )
    task: str = model_field(PAIRS, "what the model was trained for: `pairs`, `grades` or `triples`", choice(*TASKS))
    pooling: str = model_field("mean", "`mean` of the tokens, or the `first` token", choice(*POOLINGS))
    max_tokens: int = model_field(512, "longest sequence in tokens; longer ones are cut", LENGTH)
    token_type_ids: bool = model_field(False, "token type 1 for the second text of a cross-encoder", TRUTH)
    scale: float = model_field(20.0, "factor of the cosines in a bi-encoder's losses", number(1e-6, 1e6))
    threshold: float | None = model_field(None, "score from which a pair matches; empty: none", optional(NUMBER))
    grades: list[float] | None = model_field(
        None, "lowest and highest label of the training data; empty: scores without bounds",
        optional(list_of(NUMBER, 2)),
    )  # fmt: skip

    model_type: ClassVar[str] = "paddle_rope_matching"

    def __post_init__(self):
        self.num_labels, self.id2label = 1, None
        super().__post_init__()
        if self.grades is not None and not (len(self.grades) == 2 and self.grades[0] < self.grades[1]):
            raise ValueError(f"grades must be the lowest and the highest label, got {shown(self.grades)}")
        if self.token_type_ids and self.architecture != CROSS_ENCODER:
            raise ValueError("token_type_ids tell the two texts of a cross_encoder apart; a bi_encoder reads one text")
        if self.token_type_ids and self.type_vocab_size < 2:
            raise ValueError("token_type_ids need a model with token types (type_vocab_size 2); leave them out")

    @property
    def is_cross_encoder(self):
        """Whether two texts are read as one sequence."""
        return self.architecture == CROSS_ENCODER

    @property
    def output_shape(self):
        """Shape of the model's output for a sequence, a logit or a vector."""
        return () if self.is_cross_encoder else (self.hidden_size,)


@dataclass
class MatchingOptions(PredictorOptions):
    """The options of a ``MatchingPredictor``."""

    max_tokens: int | None = model_field(None, "tokens read, the rest is cut (default: as trained)", optional(LENGTH))

    VERB_OPTIONS = ("embed",)
    TAKES = prediction_options.PAIRS
    RESULTS = "scores of pairs of texts"
    EXAMPLE = {"sentence1": "a", "sentence2": "b", "score": 0.93, "label": 1}

    @classmethod
    def embeds(cls, config: dict[str, Any]) -> bool:
        return config.get("architecture") == BI_ENCODER

    @classmethod
    def record_keys(cls, text_column: str) -> tuple[tuple[str, ...], ...]:
        return PAIR_KEYS, TRIPLE_KEYS


@dataclass
class MatchingArguments(RecipeArguments):
    """Keys of the matching recipe, in addition to the keys of every recipe."""

    MODEL = "paddle_rope.tasks.matching.model:MatchingModel"
    SCORES = ("accuracy", "f1", "spearman")
    LENGTH_KEY = "max_tokens"
    METRIC = "score"  # see paddle_rope.tasks.matching.prediction.choosing_score
    HYPER_PARAMETERS = (*RecipeArguments.HYPER_PARAMETERS, "architecture")
    DEFAULTS = {"num_train_epochs": 5}

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
