"""The word features of the tokens of a text, and their kinds.

A token may have several characters: beginnings refer to its first one, ends to its last one. Special tokens, whose
offsets are empty, have no values.
"""

from collections import Counter
from functools import lru_cache
from operator import add
from typing import NamedTuple

import numpy as np

from tasks.ner.features.chinese_words import PLACES as WORD_PLACES
from tasks.ner.features.chinese_words import TAG_CLASSES, PairTable, tag_class

# Kinds that give a token values of a vocabulary, and how many of them.
COLUMNS = {
    "segmentation": 1,  # place in the word of jieba's segmentation, and its part of speech
    "bigrams": 2,  # the token's first character with the one before it, its last with the one behind it
    "words": 3,  # the segmentation's word, the longest dictionary word that begins here, that ends here
}
# Kinds that give a token 0/1 flags: "dictionary", the words of jieba's dictionary that the token is part of;
# "gazetteer", the entities of the training data that it would be part of.
FEATURE_KINDS = (*COLUMNS, "dictionary", "gazetteer")
PLACES = 3  # of a flag: begin, inside, end
LENGTHS = 3  # 2, 3, 4 or more characters
DICTIONARY_CLASSES = len(TAG_CLASSES) * LENGTHS
UNKNOWN = 1  # number of a value that the vocabulary lacks; 0 says that there is none
FIRST_VALUE = UNKNOWN + 1  # number of a vocabulary's first value
_OTHER_TAG = 0  # number of the parts of speech that the vocabulary lacks
_BEGINS, _ENDS = 2, 1  # a character begins a word, ends it; both, or none
# Whether a token has the value of its last character, for each column of a kind; else of its first.
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
        """The features of some of the tokens, in the order of their numbers ``rows``."""
        return self._replace(columns=self.columns[rows], packed_flags=self.packed_flags[rows])

    def joined(self, following):
        """Those of the tokens of a text and of the text that follows it, without the special tokens between them."""
        columns, flags = (np.concatenate([one[:-1], other[1:]]) for one, other in list(zip(self, following))[:2])
        return self._replace(columns=columns, packed_flags=flags)


class TokenPlaces(NamedTuple):
    """Where the tokens of a text are."""

    first: np.ndarray  # int64 [tokens], first character; for special tokens the length of the text
    last: np.ndarray  # int64 [tokens], last character; for special tokens the length of the text
    are_characters: bool  # whether each token is one character


def token_places(offsets, size):
    """:class:`TokenPlaces` of a list of half-open characters, in a text of ``size`` characters; not to be changed."""
    return (_remembered if len(offsets) <= 128 else _token_places)(tuple(offsets), size)


def _token_places(offsets, size):
    starts, ends = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
    is_token = ends > starts
    first, last = np.where(is_token, starts, size), np.where(is_token, ends - 1, size)
    return TokenPlaces(first, last, bool((first == last).all()))


_remembered = lru_cache(maxsize=256)(_token_places)  # short texts of one length mostly have the same tokens


class SpanFlags:
    """Flags of tokens from spans of characters of so many ``classes``. Threads may share it.

    A token begins a span if its first character does, ends one if its last character does, and is inside if the span
    extends to both sides of it. The ``PLACES`` flags of a class follow each other.
    """

    def __init__(self, classes):
        self.num_flags = classes * PLACES
        self._num_bytes = -(-self.num_flags // 8)
        # The flags of a character are the bits of an integer, the first flag the highest one, as np.packbits has them.
        highest = self._num_bytes * 8 - 1
        self._bits = [
            tuple(1 << highest - PLACES * number - place for place in range(PLACES)) for number in range(classes)
        ]
        self._masks = [self._packed([sum(bits)]) for bits in zip(*self._bits)]  # of all classes, by place

    def __call__(self, spans, size, tokens):
        """uint8 ``[tokens, bytes]``, eight flags in a byte as ``np.packbits`` has them, from (start, end, class) of
        half-open spans in a text of ``size`` characters; a span of one character begins and ends with it."""
        of_character = [0] * (size + 1)
        bits = self._bits
        for start, end, number in spans:
            begin, inside, last_of_span = bits[number]
            end -= 1
            of_character[start] |= begin
            of_character[end] |= last_of_span
            for place in range(start + 1, end):
                of_character[place] |= inside
        flags = self._packed(of_character)
        of_first = flags[tokens.first]
        if tokens.are_characters or not bits:
            return of_first
        of_last, (begins, insides, ends) = flags[tokens.last], self._masks
        return of_first & begins | of_first & of_last & insides | of_last & ends

    def _packed(self, integers):
        size = self._num_bytes
        joined = b"".join([number.to_bytes(size, "big") for number in integers])
        return np.frombuffer(joined, dtype=np.uint8).reshape(len(integers), size)


def dictionary_spans(words):
    """The dictionary words of a text as spans, a class for each part of speech and length (2, 3, 4 or more)."""
    return [
        (start, end, tag_class(tag) * LENGTHS + min(end - start, 4) - 2)
        for start, of_start in words.dictionary.items()
        for end, (_, tag) in of_start
    ]


# ---- columns: a value for each token


class TokenColumns:
    """Numbers of the values of each token. Threads may share it. ``vocabularies`` is a dict from some kinds of
    ``COLUMNS`` to the list of their values."""

    def __init__(self, vocabularies):
        self._kinds = [kind for kind in COLUMNS if kind in vocabularies]
        self._of_last = [of_last for kind in self._kinds for of_last in _OF_LAST[kind]]
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

    def __call__(self, words, tokens):
        """int32 ``[tokens, columns]``: 0 none, 1 unknown, then the vocabulary; from the
        :class:`~tasks.ner.features.chinese_words.Words` of a text and its
        :class:`TokenPlaces`."""
        rows = [row for kind in self._kinds for row in getattr(self, f"_{kind}")(words)]
        if not rows:
            return np.empty([len(tokens.first), 0], dtype=np.int32)
        of_characters = np.array(rows, dtype=np.int32)
        columns = of_characters.take(tokens.first, axis=1)
        is_segmented = self._kinds[0] == "segmentation"
        if not tokens.are_characters:
            of_last = of_characters.take(tokens.last, axis=1)
            columns[self._of_last] = of_last[self._of_last]
            if is_segmented:
                columns[0] = columns[0] & ~_ENDS | of_last[0] & _ENDS
        if is_segmented:
            columns[0] = self._places.take(columns[0])
        return columns.T

    # For each kind its columns: lists with a number for each character, and one for special tokens.

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
        numbers = [0, *self._bigram_numbers(words.pairs).tolist(), 0]  # before each character, and behind the last
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
                if not ending[end - 1]:  # else a longer one ends there
                    ending[end - 1] = number
            beginning[start] = number  # of the longest
        return covering, beginning, ending


def count_values(words, kind):
    """How often each value of a kind occurs in a text, a Counter; for ``"segmentation"`` each part of speech."""
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


def segmentation_values(tags):
    """All values of ``"segmentation"`` with the given parts of speech."""
    return [f"{place}-{tag}" for tag in tags for place in WORD_PLACES]
