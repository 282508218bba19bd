"""A text as tokens."""

from __future__ import annotations

from typing import NamedTuple

from tasks.ner.features import TokenFeatures


class TokenizedText(NamedTuple):
    """A text as tokens, between two special ones; ``spans`` are its entities as (type number, first token, last token),
    where the first special token has the number 0."""

    ids: list
    offsets: list  # half-open characters of each token; (0, 0) for special tokens
    spans: list
    features: TokenFeatures | None = None  # for models that take them

    @property
    def size(self) -> int:
        """How many tokens, without the special ones."""
        return len(self.ids) - 2

    def part(self, begin: int, end: int) -> TokenizedText:
        """The tokens from ``begin`` to ``end``, counted without the special ones, between special ones; no spans."""
        rows = [0, *range(begin + 1, end + 1), -1]
        ids, offsets = ([column[row] for row in rows] for column in (self.ids, self.offsets))
        return TokenizedText(ids, offsets, [], self.features and self.features.of_tokens(rows))

    def joined(self, following: TokenizedText) -> TokenizedText:
        """The tokens of this text and of the one that follows it, between special ones; no spans."""
        features = self.features and self.features.joined(following.features)
        return TokenizedText(self.ids[:-1] + following.ids[1:], self.offsets[:-1] + following.offsets[1:], [], features)
