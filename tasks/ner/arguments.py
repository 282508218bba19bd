"""The options of the NER model, helpers that compute values from them, and the keys of its recipe, each declared once.
Does not need Paddle."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Optional

from paddle_rope.options import (
    NAMES,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    SHARE,
    TRUTH,
    WIDEST_BAND,
    Kind,
    Options,
    choice,
    either,
    integer,
    list_of,
    optional,
)
from paddle_rope.options import option as model_field
from paddle_rope.roformer.config import RoFormerConfig
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import read_json_object
from paddle_rope.tasks.common.model_folder import COPY, recipe_in, refuse_other_recipe
from paddle_rope.tasks.common.prediction_options import COUNT, SIZE, PredictorOptions
from paddle_rope.tasks.common.training.arguments import RecipeArguments, model_option, option
from paddle_rope.tasks.ner.features import COLUMNS, FEATURE_KINDS, FILE_NAME
from paddle_rope.tasks.ner.formats.source import ON_ERROR, STOP, parse_fields

EFFICIENT, DENSE = SPAN_HEADS = ("efficient", "dense")
PATH = optional(Kind("a path", lambda value: isinstance(value, (str, os.PathLike))))
OR_0 = optional(integer(0, 10**9))
PROBABILITY = Kind("greater than 0 and less than 1", lambda value: NUMBER.fits(value) and 0 < value < 1)
BY_TYPE = Kind("one for each type", lambda one: isinstance(one, dict) and all(map(PROBABILITY.fits, one.values())))
AT_LEAST = optional(either(PROBABILITY, BY_TYPE))
OF_FEATURES = Kind(f"some of {', '.join(FEATURE_KINDS)}", set(FEATURE_KINDS).issuperset)


def by_type(kind: Kind) -> Kind:
    """One value of a kind, or a list with one for each type."""
    return either(kind, list_of(kind, 10**6))


def _are_sizes(value):
    """Whether ``value`` gives the sizes of word features of at least one kind."""
    match value:
        case {"tables": dict(tables), "flags": int(flags)} if tables.keys() <= COLUMNS.keys():
            fixed = value.get("fixed_words")
            are_fixed = fixed is None or ("words" in tables and type(fixed) is int and fixed > 0)
            fits = all(type(rows) is int and rows >= 2 for rows in tables.values()) and type(flags) is int
            return fits and are_fixed and flags >= 0 and bool(tables or flags)
    return False


@dataclass
class NerConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with the span head and its types."""

    types: list[str] = model_field([], "names of the entity types, in the order of the head's outputs", NAMES)
    span_head: str = model_field(EFFICIENT, "`efficient` or `dense` GlobalPointer", choice(*SPAN_HEADS))
    head_size: int = model_field(64, "width of the queries and keys of the span head", integer(1, 2**16))
    max_characters: int = model_field(512, "longest text, in characters, that its training took", COUNT)
    max_span_length: int | None = model_field(
        None, "longest entity in tokens; empty: any", optional(integer(1, WIDEST_BAND))
    )
    thresholds: float | list = model_field(
        0.0, "the logit above which a span is an entity, one number or one per type", by_type(NUMBER)
    )
    temperatures: float | list = model_field(
        1.0, "a span's probability is sigmoid(logit / temperature); one number or one per type",
        by_type(POSITIVE),
    )  # fmt: skip
    span_rope: bool = model_field(True, "RoPE in the span head; `false` for comparisons", TRUTH)
    allow_overlap: bool = model_field(True, "may entities overlap; else the one that scores highest is taken", TRUTH)
    features: dict | None = model_field(
        None,
        "sizes of the word features; empty: none",
        optional(Kind('{"tables": {kind: rows}, "flags": number}', _are_sizes)),
    )
    character_dropout: float = model_field(0.0, "share of characters that training hides", SHARE)
    feature_dropout: float = model_field(0.0, "share of segmentation, bigrams and words that training hides", SHARE)
    unk_token_id: int | None = model_field(None, "id of [UNK], for `character_dropout`", optional(integer(0, 2**24)))
    window_tokens: int | None = model_field(
        None,
        "tokens that prediction reads at once, a length that training covered well; empty: `max_characters`",
        SIZE,
    )
    longest_text: int | None = model_field(None, "tokens of the longest training text", SIZE)
    longest_entity: int | None = model_field(None, "tokens of the longest training entity", SIZE)

    model_type: ClassVar[str] = "paddle_rope_ner"
    _numbers_of: ClassVar = {"types": ("thresholds", "temperatures")}  # option -> options with a number for each name

    def __post_init__(self):
        self.types = list(self.types) if isinstance(self.types, tuple) else self.types
        super().__post_init__()
        for kind, options in self._numbers_of.items():
            count = len(getattr(self, kind))
            for name in options:
                if len(of_types(getattr(self, name), count)) != count:
                    raise ValueError(f"{name} must be one number or one for each of {count} {kind}")
        if self.character_dropout and self.unk_token_id is None:
            raise ValueError("character_dropout needs unk_token_id, the id of [UNK]")

    def scores_of_text(self, tokens: int) -> int:
        """How many scores the model gives to the spans of a text of so many tokens."""
        return len(self.types) * tokens * (self.max_span_length or tokens)


def of_types(value: float | Sequence[float], types: int) -> list[float]:
    """A list of ``types`` numbers, one per type; a single number is repeated."""
    return list(value) if isinstance(value, (list, tuple)) else [float(value)] * types


def probability(score: float, temperature: float) -> float:
    """sigmoid(score / temperature)."""
    x = score / temperature
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


@dataclass
class FilterOptions(Options):
    """Which entities to keep: options of the command line and keys of a request to the service."""

    types: Sequence[str] | None = model_field(None, "find these types only", optional(NAMES))
    min_probability: float | dict[str, float] | None = model_field(None, "lowest probability of an entity", AT_LEAST)
    top_k: int | None = model_field(None, "find so many entities of a text, the most probable ones", SIZE)
    consistent: bool = model_field(False, "a string is an entity at all of its places in a text or at none", TRUTH)


@dataclass
class NerOptions(FilterOptions, PredictorOptions):
    """The options of a ``NerPredictor``."""

    max_tokens: int | None = model_field(None, "tokens read at once, more in windows (default: as trained)", SIZE)
    overlap: int | None = model_field(None, "longest entity in tokens that no window cuts (default: as trained)", OR_0)
    max_entity_tokens: int | None = model_field(
        None, "tokens of the longest entity that is found, 0 for any (default: twice the longest in training)", OR_0
    )
    dictionary: os.PathLike | str | None = model_field(None, "terms to find: term<TAB>type[<TAB>hint] a line", PATH)
    patterns: os.PathLike | str | None = model_field(None, "YAML file of types with regular expressions to find", PATH)

    VERB_OPTIONS = ("format", "html", "whole_files", "examples", "fields", "on_error", "text_column")
    AVERAGES = True
    FINDS_ENTITIES = True
    RESULTS = "entities of texts"
    EXAMPLE = {
        "text": "叶老桂博士",
        "entities": [{"start": 0, "end": 3, "type": "name", "text": "叶老桂", "score": 1.78, "probability": 0.86}],
    }


@dataclass
class NerArguments(RecipeArguments):
    """Keys of the NER recipe, in addition to the keys of every recipe."""

    MODEL = "paddle_rope.tasks.ner.model:NerModel"
    SCORES = ("precision", "recall", "f1")
    METRIC = "f1"
    HYPER_PARAMETERS = (*RecipeArguments.HYPER_PARAMETERS, "features")

    recipe: str = option("ner", "what is trained")
    train_file: Optional[str] = option(None, "labeled data in any of the supported formats")
    train_texts: Optional[int] = option(
        None, "take so many texts of `train_file` only, drawn with the seed; empty: all", POSITIVE
    )
    fields: Optional[str] = option(
        None, "keys of records with other names than usual, such as `text=content,spans=marks,start=from,type=kind`"
    )
    on_error: str = option(
        STOP, "`stop` at the first annotation that is wrong, or `skip` all of them and count them", choice(*ON_ERROR)
    )
    max_characters: int = option(512, "longest training text in characters; a longer one is an error or cut", POSITIVE)
    cut_long_texts: bool = option(False, "cut longer training texts into windows of so many tokens")
    span_head: str = model_option(NerConfig, "span_head")
    head_size: int = model_option(NerConfig, "head_size")
    max_span_length: Optional[int] = model_option(NerConfig, "max_span_length")
    span_rope: bool = model_option(NerConfig, "span_rope")
    allow_overlap: Optional[bool] = option(None, "may entities overlap; empty: as in train")
    tune_thresholds: bool = option(False, "after training, choose a threshold for each type on dev")
    threshold_for_f1: bool = option(
        False, "after training, lower the threshold of all types to half of the dev F1, as a probability"
    )
    features: Optional[list[str]] = option(
        None, f"word features, separated by commas: {', '.join(FEATURE_KINDS)}", OF_FEATURES
    )
    character_dropout: float = model_option(NerConfig, "character_dropout")
    feature_dropout: float = model_option(NerConfig, "feature_dropout")
    masked_lm_epochs: int = option(0, "epochs of masked language modeling before", NOT_NEGATIVE)
    unlabeled_files: Optional[list[str]] = option(
        None, "files of unlabeled texts for it, separated by commas: one text per line, or JSON Lines"
    )
    teacher_files: Optional[list[str]] = option(
        None,
        "files that a trained model has predicted, separated by commas: their texts are learned too, and each entity "
        "counts as its `probability` says",
    )
    keep_types: bool = option(
        False, "keep the types of the NER model `pretrained`: of those not labeled here, it marks what it finds"
    )
    fit_to_data: bool = option(False, "set the keys that you leave out by the size of the data and of the encoder")

    def check(self, config):
        parse_fields(self.fields or "")
        chosen = self.fit_to_data and "masked_lm_epochs" not in config
        if self.unlabeled_files and not self.masked_lm_epochs and not chosen:
            raise InputError("configuration: unlabeled_files without masked_lm_epochs; say how often they are seen")
        if self.keep_types and self.pretrained is None:
            raise InputError("configuration: keep_types without pretrained; give the model whose types are kept")
        if self.keep_types and self.teacher_files:
            raise InputError("configuration: keep_types and teacher_files; give one of them, each marks other texts")
        if self.keep_types:
            self._check_kept_model()
        self._check_head()
        self.check_dev("tune_thresholds")
        self.check_dev("threshold_for_f1")
        if self.tune_thresholds and self.threshold_for_f1:
            raise InputError("configuration: tune_thresholds and threshold_for_f1; give one of them")

    def _check_kept_model(self):
        """Raise InputError if ``pretrained`` is no NER model, or has not all of the ``features``."""
        refuse_other_recipe(self.pretrained, NerArguments.recipe)
        if not Path(self.pretrained).is_dir():
            return  # an earlier run of a plan trains it
        file = Path(self.pretrained) / FILE_NAME
        kinds = read_json_object(file, COPY).get("kinds") if file.is_file() else []
        if isinstance(kinds, list) and not set(self.features or ()) <= set(kinds):
            found = f"its word features are {', '.join(map(str, kinds)) or 'none'}"
            raise InputError(f"{self.pretrained}: {found}; give the same features")

    def _check_head(self):
        """Raise InputError if ``pretrained`` has a span head, and its weights do not fit the one that is asked for."""
        if self.pretrained is None or recipe_in(self.pretrained) is None:
            return
        config = read_json_object(Path(self.pretrained) / "config.json", COPY)
        for key in ("span_head", "head_size"):
            ours, theirs = getattr(self, key), config.get(key)
            if theirs not in (None, ours):
                raise InputError(f"{self.pretrained}: its {key} is {theirs}, here it is {ours}; give --{key} {theirs}")
