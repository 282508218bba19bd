"""The word features of the tokens of a text, and their kinds.

A token may have several characters: beginnings refer to its first one, ends to its last one. Special tokens, whose
offsets are empty, have no values.
"""

from collections import Counter
from functools import lru_cache
from operator import add
from typing import NamedTuple

import numpy as np

from paddle_rope.tasks.ner.features.chinese_words import TAG_CLASSES, PairTable, tag_class

# Kinds that give a token values from a vocabulary, and how many values.
COLUMNS = {
    "segmentation": 1,  # place in the word of jieba's segmentation, and its part of speech
    "bigrams": 2,  # the token's first character with the one before it, its last with the one after it
    "words": 3,  # the segmentation's word, the longest dictionary word that begins here, the longest that ends here
}
# Kinds that give a token 0/1 flags: "dictionary", the words of jieba's dictionary that the token is part of;
# "gazetteer", the strings of training entities that it is part of.
FEATURE_KINDS = (*COLUMNS, "dictionary", "gazetteer")
PLACES = 3  # of a flag: begin, inside, end
LENGTHS = 3  # 2, 3, 4 or more characters
DICTIONARY_CLASSES = len(TAG_CLASSES) * LENGTHS
UNKNOWN = 1  # number of a value that the vocabulary lacks; 0 says that there is none
FIRST_VALUE = UNKNOWN + 1  # number of a vocabulary's first value
_OTHER_TAG = 0  # number of the parts of speech that the vocabulary lacks
_BEGINS, _ENDS = 2, 1  # bits of a character that begins a word, that ends one
# For each column of a kind: whether a token has the value of its last character instead of its first.
_OF_LAST = {"segmentation": [False], "bigrams": [False, True], "words": [False, False, True]}


def check_kinds(kinds):
    """The kinds in the order of ``FEATURE_KINDS``, each once; raises ValueError if one is unknown."""
    unknown = [kind for kind in kinds if kind not in FEATURE_KINDS]
    if unknown:
        raise ValueError(f"features must be some of {', '.join(FEATURE_KINDS)}, got {unknown[0]!r}")
    return tuple(kind for kind in FEATURE_KINDS if kind in kinds)


class TokenFeatures(NamedTuple):
    """Columns and flags of tokens; the flags are packed, eight in a byte, until they are batched."""

    columns: np.ndarray  # int32 [tokens, columns]; 0 none, 1 unknown, then the vocabulary
    packed_flags: np.ndarray  # uint8 [tokens, bytes]
    num_flags: int

    @property
    def flags(self):
        """bool ``[tokens, num_flags]``."""
        return np.unpackbits(self.packed_flags, axis=1, count=self.num_flags).view(bool)

    def of_tokens(self, rows):
        """The features of the tokens with the numbers ``rows``, in that order."""
        return self._replace(columns=self.columns[rows], packed_flags=self.packed_flags[rows])

    def joined(self, following):
        """The features of this text and the text that follows it, without the special tokens between them."""
        columns, flags = (np.concatenate([one[:-1], other[1:]]) for one, other in zip(self[:2], following[:2]))
        return self._replace(columns=columns, packed_flags=flags)


@lru_cache(maxsize=64)  # short texts of one length mostly have the same tokens
def token_places(offsets, size):
    """The first and the last character of each token, int64 ``[2, tokens]``; for special tokens both are ``size``.
    ``offsets`` is a tuple of half-open ranges in a text of ``size`` characters. Do not change the cached array."""
    starts, ends = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
    return np.where(ends > starts, [starts, ends - 1], size)


def span_flags(spans, classes, size, places):
    """The flags of tokens, bool ``[tokens, classes * PLACES]``. ``spans`` are half-open (start, end, class) in a text
    of ``size`` characters, and ``places`` are the :func:`token_places` of its tokens.

    A token begins a span if its first character does, ends one if its last character does, and is inside if the span
    extends to both sides of it. The ``PLACES`` flags of a class follow each other.
    """
    of_characters = np.zeros([size + 1, classes, PLACES], dtype=bool)
    starts, ends, numbers = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    of_characters[starts, numbers, 0] = of_characters[ends - 1, numbers, 2] = True
    for start, end, number in spans:
        if end - start > 2:
            of_characters[start + 1 : end - 1, number, 1] = True
    flags, of_last = of_characters[places]
    flags[..., 1] &= of_last[..., 1]
    flags[..., 2] = of_last[..., 2]
    return flags.reshape(len(flags), classes * PLACES)


def dictionary_spans(words):
    """The dictionary words of a text as spans, a class for each part of speech and length (2, 3, 4 or more)."""
    return [
        (start, end, tag_class(tag) * LENGTHS + min(end - start, 4) - 2)
        for start, of_start in words.dictionary.items()
        for end, (_, tag) in of_start
    ]


# ---- columns: a value for each token


class TokenColumns:
    """Finds the numbers of each token's values. Threads may share it. ``vocabularies`` is a dict from some kinds of
    ``COLUMNS`` to the list of their values."""

    def __init__(self, vocabularies):
        self._kinds = [kind for kind in COLUMNS if kind in vocabularies]
        self._of_last = [[of_last] for kind in self._kinds for of_last in _OF_LAST[kind]]
        places, bigrams, self._word_numbers = (
            {value: number for number, value in enumerate(vocabularies.get(kind, ()), FIRST_VALUE)} for kind in COLUMNS
        )
        bigrams = {value: number for value, number in bigrams.items() if len(value) == 2}
        self._bigram_numbers = PairTable(bigrams, [*bigrams.values()], UNKNOWN)
        tags = sorted({value[2:] for value in places})
        self._tags = {tag: number for number, tag in enumerate(tags, _OTHER_TAG + 1)}
        # row of a part of speech: within a word, at its end, at its beginning, both; the last row for special tokens
        self._places = np.full([len(tags) + 2, 4], UNKNOWN, dtype=np.int32)
        self._places[-1] = 0
        for tag, number in self._tags.items():
            self._places[number] = [places.get(f"{place}-{tag}", UNKNOWN) for place in "MEBS"]

    def __call__(self, words, places):
        """The columns of a text, int32 ``[tokens, columns]``: 0 none, 1 unknown, then the vocabulary. ``words`` are its
        ``Words``, ``places`` the :func:`token_places` of its tokens."""
        rows = [row for kind in self._kinds for row in getattr(self, f"_{kind}")(words)]
        if not rows:
            return np.empty([places.shape[1], 0], dtype=np.int32)
        columns, of_last = np.array(rows, dtype=np.int32).take(places, axis=1).transpose(1, 0, 2)
        columns = np.where(self._of_last, of_last, columns)
        if self._kinds[0] == "segmentation":
            columns[0] = self._places.take(columns[0] & ~_ENDS | of_last[0] & _ENDS)
        return columns.T

    # The columns of each kind: lists with a number for each character, and a last one for special tokens.

    def _segmentation(self, words):
        places: list = []
        number_of = self._tags.get
        for start, end, tag in words.segmentation:
            within = number_of(tag, _OTHER_TAG) * 4
            if end - start == 1:
                places.append(within + _BEGINS + _ENDS)
            else:
                places += [within + _BEGINS, *[within] * (end - start - 2), within + _ENDS]
        return [[*places, self._places.size - 4]]

    def _bigrams(self, words):
        numbers = [0, *self._bigram_numbers(words.pairs).tolist(), 0]  # before each character, and after the last
        return ([*numbers[:-1], 0], [*numbers[1:], 0]) if words.text else ([0], [0])

    def _words(self, words):
        text, number_of = words.text, self._word_numbers.get
        covering: list = []
        for start, end, _ in words.segmentation:
            covering += [number_of(text[start:end], UNKNOWN)] * (end - start)
        covering.append(0)
        beginning, ending = [0] * len(covering), [0] * len(covering)
        for start, of_start in words.dictionary.items():
            for end, _ in of_start:
                number = number_of(text[start:end], UNKNOWN)
                if not ending[end - 1]:  # otherwise a longer one ends there
                    ending[end - 1] = number
            beginning[start] = number  # of the longest
        return covering, beginning, ending


def count_values(words, kind):
    """A Counter of the values of a kind in a text; for ``"segmentation"``, of its parts of speech."""
    text = words.text
    if kind == "segmentation":
        return Counter(tag for _, _, tag in words.segmentation)
    if kind == "bigrams":
        return Counter(map(add, text, text[1:]))
    places = {(start, end) for start, end, _ in words.segmentation}
    longest_ending: dict = {}
    for start, of_start in reversed(words.dictionary.items()):
        places.add((start, of_start[-1][0]))
        longest_ending.update((end, start) for end, _ in of_start)  # the longest comes last
    places.update((start, end) for end, start in longest_ending.items())
    return Counter(text[start:end] for start, end in places)
