"""The configuration of the NER model, and what trained and exported models compute from it. Without paddle."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from paddle_rope.options import (
    NAMES,
    NUMBER,
    POSITIVE,
    SHARE,
    TRUTH,
    WIDEST_BAND,
    Kind,
    choice,
    either,
    integer,
    list_of,
    option,
    optional,
)
from paddle_rope.roformer.config import RoFormerConfig
from tasks.ner.features import COLUMNS

EFFICIENT, DENSE = SPAN_HEADS = ("efficient", "dense")
_LENGTH = integer(1, 10**9)


def _of_types(kind: Kind) -> Kind:
    return either(kind, list_of(kind, 10**6))


def _are_sizes(value):
    """Whether ``value`` gives the sizes of word features of at least one kind."""
    try:
        tables, flags = value["tables"], value["flags"]
        rows = [*tables.values()]
        fits = {*tables} <= {*COLUMNS} and all(type(number) is int for number in (*rows, flags))
        return fits and all(number >= 2 for number in rows) and flags >= 0 and bool(rows or flags)
    except (KeyError, TypeError, AttributeError):
        return False


@dataclass
class NerConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with the span head and its types."""

    types: list[str] = option([], "names of the entity types, in the order of the head's outputs", NAMES)
    span_head: str = option(EFFICIENT, "`efficient` or `dense` GlobalPointer", choice(*SPAN_HEADS))
    head_size: int = option(64, "width of the queries and keys of the span head", integer(1, 2**16))
    max_tokens: int = option(512, "longest text, in characters, that its training took", _LENGTH)
    max_span_length: int | None = option(
        None, "longest entity in tokens; empty: any", optional(integer(1, WIDEST_BAND))
    )
    thresholds: float | list = option(
        0.0, "the logit above which a span is an entity, one number or one per type", _of_types(NUMBER)
    )
    temperatures: float | list = option(
        1.0, "a span's probability is sigmoid(logit / temperature); one number or one per type",
        _of_types(POSITIVE),
    )  # fmt: skip
    span_rope: bool = option(True, "RoPE in the span head; `false` for comparisons", TRUTH)
    allow_overlap: bool = option(True, "may entities overlap; else the one that scores highest is taken", TRUTH)
    features: dict | None = option(
        None,
        "sizes of the word features; empty: none",
        optional(Kind('{"tables": {kind: rows}, "flags": number}', _are_sizes)),
    )
    character_dropout: float = option(0.0, "share of characters that training hides", SHARE)
    feature_dropout: float = option(0.0, "share of feature values that training hides", SHARE)
    unk_token_id: int | None = option(None, "id of [UNK], for `character_dropout`", optional(integer(0, 2**24)))
    window_tokens: int | None = option(
        None,
        "tokens that prediction reads at once, a length that training covered well; empty: `max_tokens`",
        optional(_LENGTH),
    )
    longest_text: int | None = option(None, "tokens of the longest training text", optional(_LENGTH))
    longest_entity: int | None = option(None, "tokens of the longest training entity", optional(_LENGTH))

    model_type: ClassVar[str] = "paddle_rope_ner"
    RENAMED: ClassVar[dict[str, str]] = {"max_length": "max_tokens"}  # names of version 0.1

    def __post_init__(self):
        self.types = list(self.types) if isinstance(self.types, tuple) else self.types
        super().__post_init__()
        for name in ("thresholds", "temperatures"):
            if len(of_types(getattr(self, name), len(self.types))) != len(self.types):
                raise ValueError(f"{name} must be one number or one for each of {len(self.types)} types")
        if self.character_dropout and self.unk_token_id is None:
            raise ValueError("character_dropout needs unk_token_id, the id of [UNK]")


def of_types(value: float | Sequence[float], types: int) -> list[float]:
    """A number for each type."""
    return list(value) if isinstance(value, (list, tuple)) else [float(value)] * types


def scores_of_text(config: Any, length: int) -> int:
    """How many scores a text of ``length`` tokens has."""
    return len(config.types) * length * (config.max_span_length or length)


def probability(score: float, temperature: float) -> float:
    """sigmoid(score / temperature)."""
    x = score / temperature
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
