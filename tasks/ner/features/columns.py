"""Features with a value for each token: place in a word, bigrams, words.

A token may have several characters: beginnings refer to its first one, ends to its last one. Special tokens, whose
offsets are empty, have no values.
"""

from collections import Counter
from operator import add

import numpy as np

from tasks.ner.features.chinese_words import PLACES
from tasks.ner.features.pairs import PairTable
from tasks.ner.features.token_features import COLUMNS, UNKNOWN

FIRST_VALUE = UNKNOWN + 1  # number of a vocabulary's first value
_OTHER_TAG = 0  # number of the parts of speech that the vocabulary lacks
_BEGINS, _ENDS = 2, 1  # a character begins a word, ends it; both, or none
# Whether a token has the value of its last character, for each column of a kind; else of its first.
_OF_LAST = {"segmentation": [False], "bigrams": [False, True], "words": [False, False, True]}


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
        :class:`~tasks.ner.features.token_features.TokenPlaces`."""
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
    return [f"{place}-{tag}" for tag in tags for place in PLACES]
