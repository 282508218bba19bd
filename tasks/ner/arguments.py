"""Configuration keys of the NER recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from tasks.common.errors import InputError
from tasks.common.training import arguments as common
from tasks.common.training.arguments import POSITIVE, SHARE, RecipeArguments
from tasks.ner.features import FEATURE_KINDS, check_kinds

METRIC = "f1"  # of dev, chooses the epoch


@dataclass
class NerArguments(RecipeArguments):
    """Keys of the NER recipe: those of every recipe and its own."""

    train_file: Optional[str] = field(default=None, metadata={"help": "labeled data in any of the supported formats"})
    span_head: str = field(default="efficient", metadata={"help": "`efficient` or `dense` GlobalPointer"})
    head_size: int = field(default=64, metadata={"help": "width of the queries and keys of the span head"})
    max_span_length: Optional[int] = field(default=None, metadata={"help": "longest entity in tokens; empty: any"})
    span_rope: bool = field(default=True, metadata={"help": "RoPE in the span head; `false` for comparisons"})
    allow_overlap: Optional[bool] = field(default=None, metadata={"help": "may entities overlap; empty: as in train"})
    tune_thresholds: bool = field(
        default=False, metadata={"help": "after training, choose a threshold for each type on dev"}
    )
    features: Optional[str] = field(
        default=None, metadata={"help": f"word features, separated by commas: {', '.join(FEATURE_KINDS)}"}
    )
    character_dropout: float = field(default=0.0, metadata={"help": "share of characters that training hides"})
    feature_dropout: float = field(default=0.0, metadata={"help": "share of feature values that training hides"})
    masked_lm_epochs: int = field(default=0, metadata={"help": "epochs of masked language modeling before"})
    masked_lm_files: Optional[str] = field(
        default=None,
        metadata={"help": "files with more texts for it, separated by commas: one text per line, or JSON Lines"},
    )

    def ranges(self):
        return {
            **super().ranges(),
            "head_size": POSITIVE,
            "max_span_length": POSITIVE,
            "character_dropout": SHARE,
            "feature_dropout": SHARE,
            "masked_lm_epochs": (lambda value: value >= 0, "at least 0"),
        }

    def head_options(self):
        """The options of a :class:`tasks.ner.model.NerConfig` beside those of the encoder."""
        keys = (
            "max_length", "span_head", "head_size", "max_span_length", "span_rope", "character_dropout",
            "feature_dropout",
        )  # fmt: skip
        return {key: getattr(self, key) for key in keys}


def resolve_config(config):
    """As :func:`tasks.common.training.arguments.resolve_config`, with :class:`NerArguments`."""
    if config.get("features") is not None:
        config = {**config, "features": _feature_names(config["features"])}
    if isinstance(config.get("masked_lm_files"), (list, tuple)):
        config = {**config, "masked_lm_files": ",".join(map(str, config["masked_lm_files"]))}
    config, run, arguments = common.resolve_config(config, NerArguments, METRIC)
    if run.masked_lm_files and not run.masked_lm_epochs:
        raise InputError("configuration: masked_lm_files without masked_lm_epochs; say how often they are to be seen")
    run.check_dev("tune_thresholds")
    return config, run, arguments


def _feature_names(value):
    """A list of kinds, or their names between commas, in their order and with commas; None if there are none."""
    names = value if isinstance(value, (list, tuple)) else str(value).split(",")
    names = [str(name).strip() for name in names]
    try:
        return ",".join(check_kinds([name for name in names if name])) or None
    except ValueError as error:
        raise InputError(f"configuration: {error}") from None
