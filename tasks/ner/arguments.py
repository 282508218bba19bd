"""Configuration keys of the NER recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from tasks.common.errors import InputError
from tasks.common.training.arguments import POSITIVE, SHARE, RecipeArguments, with_commas
from tasks.ner.features import FEATURE_KINDS, check_kinds


@dataclass
class NerArguments(RecipeArguments):
    """Keys of the NER recipe: those of every recipe and its own."""

    METRIC = "f1"
    RENAMED = {"max_length": "max_characters"}

    train_file: Optional[str] = field(default=None, metadata={"help": "labelled data, formats: convert_data.py --help"})
    max_characters: int = field(default=512, metadata={"help": "longest text in characters; a longer one is an error"})
    span_head: str = field(default="efficient", metadata={"help": "efficient or dense GlobalPointer"})
    head_size: int = field(default=64, metadata={"help": "size of the head's queries and keys"})
    max_span_length: Optional[int] = field(default=None, metadata={"help": "longest entity in tokens; none: any"})
    span_rope: bool = field(default=True, metadata={"help": "RoPE in the span head; false for comparisons"})
    allow_overlap: Optional[bool] = field(default=None, metadata={"help": "may entities overlap; none: as in train"})
    tune_thresholds: bool = field(
        default=False, metadata={"help": "choose a threshold for each type on dev in the end"}
    )
    features: Optional[str] = field(
        default=None, metadata={"help": f"what stands beside the characters, some of {', '.join(FEATURE_KINDS)}"}
    )
    character_dropout: float = field(default=0.0, metadata={"help": "share of characters that training hides"})
    feature_dropout: float = field(default=0.0, metadata={"help": "share of feature values that training hides"})
    masked_lm_epochs: int = field(default=0, metadata={"help": "epochs of masked LM on train_file before"})
    masked_lm_files: Optional[str] = field(
        default=None, metadata={"help": "more texts for masked LM, files between commas: a text a line, or JSON lines"}
    )

    def ranges(self):
        return {
            **super().ranges(),
            **dict.fromkeys(("max_characters", "head_size", "max_span_length"), POSITIVE),
            "character_dropout": SHARE,
            "feature_dropout": SHARE,
            "masked_lm_epochs": (lambda value: value >= 0, "at least 0"),
        }

    @classmethod
    def normalized(cls, config):
        config = with_commas(super().normalized(config), "masked_lm_files", "features")
        if config.get("features") is not None:
            config["features"] = _feature_names(config["features"])
        return config

    def check(self, config):
        if self.masked_lm_files and not self.masked_lm_epochs:
            raise InputError(
                "configuration: masked_lm_files without masked_lm_epochs; say how often they are to be seen"
            )
        self.check_dev("tune_thresholds")

    def head_options(self):
        """The options of a :class:`tasks.ner.model.NerConfig` beside those of the encoder."""
        keys = ("span_head", "head_size", "max_span_length", "span_rope", "character_dropout", "feature_dropout")
        return {"max_tokens": self.max_characters, **{key: getattr(self, key) for key in keys}}


def _feature_names(value):
    """Names of kinds between commas in the order of the kinds; None if there are none."""
    names = [name.strip() for name in str(value).split(",")]
    try:
        return ",".join(check_kinds([name for name in names if name])) or None
    except ValueError as error:
        raise InputError(f"configuration: {error}") from None
