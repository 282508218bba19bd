"""Configuration keys of the NER recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from tasks.common.errors import InputError
from tasks.common.language import Message
from tasks.common.training.arguments import POSITIVE, SHARE, RecipeArguments, option, with_commas
from tasks.ner.features import FEATURE_KINDS, check_kinds

SPECIAL_TOKENS = 2  # around a text
MOST_POSITIONS = 2**24  # of position_gaps


@dataclass
class NerArguments(RecipeArguments):
    """Keys of the NER recipe: those of every recipe and its own."""

    METRIC = "f1"
    HYPER_PARAMETERS = (*RecipeArguments.HYPER_PARAMETERS, "features")
    RENAMED = {"max_length": "max_characters", "masked_lm_files": "texts"}

    train_file: Optional[str] = option(None, "labeled data in any of the supported formats")
    train_texts: Optional[int] = option(
        None, "take so many texts of `train_file` only, drawn with the seed; empty: all"
    )
    max_characters: int = option(512, "longest training text in characters; a longer one is an error or cut")
    cut_long_texts: bool = option(False, "cut longer training texts into windows of so many tokens")
    span_head: str = option("efficient", "`efficient` or `dense` GlobalPointer")
    head_size: int = option(64, "width of the queries and keys of the span head")
    max_span_length: Optional[int] = option(None, "longest entity in tokens; empty: any")
    span_rope: bool = option(True, "RoPE in the span head; `false` for comparisons")
    allow_overlap: Optional[bool] = option(None, "may entities overlap; empty: as in train")
    tune_thresholds: bool = option(False, "after training, choose a threshold for each type on dev")
    threshold_for_f1: bool = option(
        False, "after training, lower the threshold of all types to half of the dev F1, as a probability"
    )
    features: Optional[str] = option(None, f"word features, separated by commas: {', '.join(FEATURE_KINDS)}")
    character_dropout: float = option(0.0, "share of characters that training hides")
    feature_dropout: float = option(0.0, "share of feature values that training hides")
    join_share: float = option(0.0, "share of the training texts that stand in joined texts, 0 to 1")
    join_characters: Optional[int] = option(None, "longest joined text in characters")
    position_gaps: Optional[int] = option(
        None, "in training, positions are drawn from so many, in order and with gaps; empty: 0, 1, 2, ..."
    )
    masked_lm_epochs: int = option(0, "epochs of masked language modeling before")
    texts: Optional[str] = option(
        None, "files of unlabeled texts for it, separated by commas: one text per line, or JSON Lines"
    )
    fit_to_data: bool = option(False, "choose by the size of the training data what is not given")

    def ranges(self):
        return {
            **super().ranges(),
            **dict.fromkeys(
                ("train_texts", "max_characters", "head_size", "max_span_length", "join_characters"),
                POSITIVE,
            ),
            "position_gaps": (
                lambda value: value is None or 1 <= value <= MOST_POSITIONS,
                f"from 1 to {MOST_POSITIONS}",
            ),
            "join_share": (lambda value: 0 <= value <= 1, "from 0 to 1"),
            "character_dropout": SHARE,
            "feature_dropout": SHARE,
            "masked_lm_epochs": (lambda value: value >= 0, Message("at least 0")),
        }

    @classmethod
    def normalized(cls, config):
        config = with_commas(super().normalized(config), "texts", "features")
        if config.get("features") is not None:
            config["features"] = feature_names(config["features"])
        return config

    def check(self, config):
        chosen = self.fit_to_data and "masked_lm_epochs" not in config
        if self.texts and not self.masked_lm_epochs and not chosen:
            raise InputError("configuration: texts without masked_lm_epochs; say how often they are to be seen")
        self._check_joined()
        if self.position_gaps is not None and self.position_gaps < self.max_characters + SPECIAL_TOKENS:
            raise InputError(
                "configuration: position_gaps {position_gaps} has fewer positions than a text of max_characters "
                "{max_characters} has tokens; give at least {least}",
                position_gaps=self.position_gaps,
                max_characters=self.max_characters,
                least=self.max_characters + SPECIAL_TOKENS,
            )
        self.check_dev("tune_thresholds")
        self.check_dev("threshold_for_f1")
        if self.tune_thresholds and self.threshold_for_f1:
            raise InputError("configuration: tune_thresholds and threshold_for_f1; give one of them")

    def _check_joined(self):
        if bool(self.join_share) != (self.join_characters is not None):
            given, other = ("join_share", "join_characters") if self.join_share else ("join_characters", "join_share")
            raise InputError("configuration: {given} without {other}; give both, or neither", given=given, other=other)
        if self.join_characters is not None and self.join_characters > self.max_characters:
            raise InputError(
                "configuration: join_characters {join_characters} is more than max_characters "
                "{max_characters}; give --max_characters {join_characters} or more",
                join_characters=self.join_characters,
                max_characters=self.max_characters,
            )

    def head_options(self):
        """The options of a :class:`tasks.ner.model.NerConfig` beside those of the encoder."""
        keys = (
            "span_head", "head_size", "max_span_length", "span_rope", "character_dropout", "feature_dropout",
            "position_gaps",
        )  # fmt: skip
        return {"max_tokens": self.max_characters, **{key: getattr(self, key) for key in keys}}


def feature_names(value):
    """Names of kinds of word features between commas, in the order of the kinds; None if there are none.

    Raises:
        InputError: a name is unknown.
    """
    names = [name.strip() for name in str(value).split(",")]
    try:
        return ",".join(check_kinds([name for name in names if name])) or None
    except ValueError as error:
        raise InputError("configuration: {error}", error=error) from None
