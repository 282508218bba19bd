"""Character tokenizer with exact character offsets."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from paddle_rope.roformer.tokenization.tokenizer import CLS, MASK, PAD, SEP, SPACE, UNK, Tokenizer

# One unit: a run of white space, a run of ASCII letters and digits, or one character with the marks that belong to it
# (combining marks, variation selectors, skin tones, and anything attached by a zero-width joiner).
_MARK = "[\u0300-\u036f\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
_UNIT = re.compile(rf"\s+|[A-Za-z0-9]+(?!{_MARK})|[^\s]{_MARK}*(?:(?<=\u200d)[^\s]{_MARK}*)*")


class CharTokenizer(Tokenizer):
    """One token per character, so that any span of characters is a span of tokens.

    Exceptions, each with exact offsets: a run of white space is one token; a character keeps its combining marks,
    variation selectors and joined emoji; where the vocabulary has pieces with ``##`` (BERT's), runs of ASCII letters
    and digits are cut into its longest pieces. A character is looked up as it is (in lower case with ``do_lower_case``,
    for uncased vocabularies), then in its NFKC form (full-width to half-width), else it is ``[UNK]``.

    >>> tokenizer = CharTokenizer.from_corpus(["北京大学"])
    >>> tokenizer.encode("北大").offsets
    [(0, 0), (0, 1), (1, 2), (0, 0)]
    """

    @classmethod
    def from_corpus(cls, texts: Iterable[str], min_count: int = 1) -> "CharTokenizer":
        """Build a vocabulary of the characters that occur at least ``min_count`` times, most frequent first."""
        counts = Counter(text[start:end] for text in texts for start, end in _units(text, split_words=True))
        characters = [unit for unit, count in counts.items() if count >= min_count and not unit.isspace()]
        characters.sort(key=lambda unit: (-counts[unit], unit))
        return cls([PAD, UNK, CLS, SEP, MASK, SPACE, *characters])

    def _tokenize(self, text):
        ids, offsets = [], []
        for start, end in _units(text, split_words=not self._has_pieces):
            unit = text[start:end]
            if unit.isspace():
                if SPACE in self.token_to_id:
                    ids.append(self.token_to_id[SPACE])
                    offsets.append((start, end))
            elif self._has_pieces and unit.isascii() and unit.isalnum():
                for index, first, last in self._pieces_of_word(unit.lower() if self.do_lower_case else unit):
                    ids.append(index)
                    offsets.append((start + first, start + last))
            else:
                ids.append(self._lookup(unit))
                offsets.append((start, end))
        return ids, offsets

    def _lookup(self, unit):
        cased = str.lower if self.do_lower_case else str
        unit = cased(unit)
        if unit not in self.token_to_id:
            unit = cased(unicodedata.normalize("NFKC", unit))
        return self.token_to_id.get(unit, self.unk_token_id)


def _units(text, split_words):
    """The half-open character range of each unit of ``text``; ``split_words`` cuts ASCII words into characters."""
    for match in _UNIT.finditer(text):
        start, end = match.span()
        if split_words and text[start:end].isascii() and not text[start].isspace():
            yield from ((index, index + 1) for index in range(start, end))
        else:
            yield start, end
