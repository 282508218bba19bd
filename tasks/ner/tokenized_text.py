"""A text as tokens."""

from __future__ import annotations

from typing import NamedTuple

from tasks.ner.features import TokenFeatures


class TokenizedText(NamedTuple):
    """A text as tokens; ``spans`` are its entities as (type number, first token, last token)."""

    ids: list
    offsets: list  # half-open characters of each token; (0, 0) for special tokens
    spans: list
    features: TokenFeatures | None = None  # for models that take them
