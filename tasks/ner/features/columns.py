"""Features with a value for each token: place in a word, bigrams, words.

A token may have several characters. What is said of beginnings then holds for its first one, what is said of ends for
its last one. Special tokens, whose offsets are empty, have no values.
"""

from collections import Counter
from operator import add

import numpy as np

from tasks.ner.features.jieba_files import PLACES
from tasks.ner.features.kinds import COLUMNS, UNKNOWN
from tasks.ner.features.matching import code_points, pairs_of

FIRST_VALUE = UNKNOWN + 1  # number of a vocabulary's first value
_OTHER_TAG = 0  # number of the parts of speech that the vocabulary lacks
_BEGINS, _ENDS = 2, 1  # a character begins a word, ends it; both, or none


class TokenColumns:
    """Numbers of the values of each token. Threads may share it.

    Args:
        vocabularies: dict from some kinds of ``COLUMNS`` to the list of their values.

    Attributes:
        bigram_numbers: for :class:`~tasks.ner.features.matching.PairTable`, the numbers of bigrams.
    """

    def __init__(self, vocabularies):
        self._kinds = [kind for kind in COLUMNS if kind in vocabularies]
        self._size = sum(COLUMNS[kind] for kind in self._kinds)
        self._numbers = {
            kind: {value: number for number, value in enumerate(values, FIRST_VALUE)}
            for kind, values in ((kind, vocabularies.get(kind, ())) for kind in COLUMNS)
        }
        bigrams = {value: number for value, number in self._numbers["bigrams"].items() if len(value) == 2}
        numbers = np.array([*bigrams.values()], dtype=np.int32)
        self.bigram_numbers = pairs_of(code_points("".join(bigrams)))[::2], numbers, UNKNOWN
        places = self._numbers["segmentation"]
        tags = sorted({value[2:] for value in places})
        self._tags = {tag: number for number, tag in enumerate(tags, _OTHER_TAG + 1)}
        # row of a part of speech: within a word, at its end, at its beginning, both; the last row for special tokens
        self._places = np.full([len(tags) + 2, 4], UNKNOWN, dtype=np.int32)
        self._places[-1] = 0
        for tag, number in self._tags.items():
            self._places[number] = [places.get(f"{place}-{tag}", UNKNOWN) for place in "MEBS"]

    def __call__(self, analysis, first, last):
        """Columns of tokens.

        Args:
            analysis: :class:`~tasks.ner.features.analysis.Analysis` of the text.
            first, last: int64 ``[tokens]``, first and last character of each token; the length of the text for special
                tokens.

        Returns:
            int32 ``[tokens, columns]``: 0 none, 1 unknown, then the vocabulary.
        """
        columns = np.empty([len(first), self._size], dtype=np.int32)
        number = 0
        for kind in self._kinds:
            for column in getattr(self, f"_{kind}")(analysis, first, last):
                columns[:, number] = column
                number += 1
        return columns

    def _segmentation(self, analysis, first, last):
        places: list = []
        number_of = self._tags.get
        for start, end, tag in analysis.segmentation:
            within = number_of(tag, _OTHER_TAG) * 4
            if end - start == 1:
                places.append(within + _BEGINS + _ENDS)
            else:
                places.append(within + _BEGINS)
                if end - start > 2:
                    places += [within] * (end - start - 2)
                places.append(within + _ENDS)
        places.append(self._places.size - 4)
        of_characters = np.array(places)
        return (self._places.take(of_characters[first] & ~_ENDS | of_characters[last] & _ENDS),)

    def _bigrams(self, analysis, first, last):
        # before each character, and twice behind the last one
        bigrams = np.zeros(len(analysis.text) + 2, dtype=np.int32)
        bigrams[1 : 1 + len(analysis.bigrams)] = analysis.bigrams
        return bigrams[first], bigrams[last + 1]

    def _words(self, analysis, first, last):
        text, number_of = analysis.text, self._numbers["words"].get
        covering: list = []
        for start, end, _ in analysis.segmentation:
            number = number_of(text[start:end], UNKNOWN)
            if end - start == 1:
                covering.append(number)
            else:
                covering += [number] * (end - start)
        covering.append(0)
        beginning, ending = [0] * len(covering), [0] * len(covering)
        for start, words in analysis.dictionary.items():
            for end, _ in words:
                number = number_of(text[start:end], UNKNOWN)
                if not ending[end - 1]:  # else a longer one ends there
                    ending[end - 1] = number
            beginning[start] = number  # of the longest
        of_characters = np.array([covering, beginning, ending], dtype=np.int32)
        return of_characters[0, first], of_characters[1, first], of_characters[2, last]


def count_values(analysis, kind):
    """How often each value of a kind occurs in a text, a Counter; for ``"segmentation"`` each part of speech."""
    text = analysis.text
    if kind == "segmentation":
        return Counter(tag for _, _, tag in analysis.segmentation)
    if kind == "bigrams":
        return Counter(map(add, text, text[1:]))
    places = {(start, end) for start, end, _ in analysis.segmentation}
    longest_ending: dict = {}
    for start, words in reversed(analysis.dictionary.items()):
        places.add((start, words[-1][0]))
        longest_ending.update((end, start) for end, _ in words)  # the longest comes last
    places.update((start, end) for end, start in longest_ending.items())
    return Counter(text[start:end] for start, end in places)


def segmentation_values(tags):
    """All values of ``"segmentation"`` with the given parts of speech."""
    return [f"{place}-{tag}" for tag in tags for place in PLACES]
