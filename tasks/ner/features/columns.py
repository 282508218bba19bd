"""Features with a value for each token: place in a word, bigrams, words.

A token may have several characters. What is said of beginnings then holds for its first one, what is said of ends for
its last one. Special tokens, whose offsets are empty, have no values.
"""

from collections import Counter
from operator import add

import numpy as np

from tasks.ner.features.jieba_files import PLACES
from tasks.ner.features.kinds import COLUMNS, UNKNOWN
from tasks.ner.features.matching import code_points, pairs_of, PairTable

FIRST_VALUE = UNKNOWN + 1  # number of a vocabulary's first value
_OTHER_TAG = 0  # number of the parts of speech that the vocabulary lacks
_BEGINS, _ENDS = 2, 1  # a character begins a word, ends it; both, or none


class TokenColumns:
    """Numbers of the values of each token. Threads may share it.

    Args:
        vocabularies: dict from some kinds of ``COLUMNS`` to the list of their values.
    """

    def __init__(self, vocabularies):
        self._kinds = [kind for kind in COLUMNS if kind in vocabularies]
        self._size = sum(COLUMNS[kind] for kind in self._kinds)
        self._numbers = {
            kind: {value: number for number, value in enumerate(values, FIRST_VALUE)}
            for kind, values in vocabularies.items()
        }
        bigrams = {value: number for value, number in self._numbers.pop("bigrams", {}).items() if len(value) == 2}
        pairs = pairs_of(code_points("".join(bigrams)))[::2]
        self._bigram_numbers = PairTable(pairs, np.array([*bigrams.values()], dtype=np.int32), UNKNOWN)
        places = self._numbers.get("segmentation", {})
        tags = sorted({value[2:] for value in places})
        self._tags = {tag: number for number, tag in enumerate(tags, _OTHER_TAG + 1)}
        # row of a part of speech: within a word, at its end, at its beginning, both
        self._places = np.full([len(tags) + 1, 4], UNKNOWN, dtype=np.int32)
        for tag, number in self._tags.items():
            self._places[number] = [places.get(f"{place}-{tag}", UNKNOWN) for place in "MEBS"]

    def __call__(self, analysis, starts, ends):
        """Columns of tokens.

        Args:
            analysis: :class:`~tasks.ner.features.analysis.Analysis` of the text.
            starts, ends: int64 ``[tokens]``, half-open characters of each token; empty for special tokens.

        Returns:
            int32 ``[tokens, columns]``: 0 none, 1 unknown, then the vocabulary.
        """
        columns = np.zeros([self._size, len(starts)], dtype=np.int32)
        tokens = np.flatnonzero(ends > starts)
        if len(tokens) and self._size:
            first, last = starts[tokens], ends[tokens] - 1
            found = (column for kind in self._kinds for column in getattr(self, f"_{kind}")(analysis, first, last))
            for row, column in zip(columns, found):
                row[tokens] = column
        return columns.T

    def _segmentation(self, analysis, first, last):
        places: list = []
        numbers = self._tags
        for start, end, tag in analysis.segmentation:
            within = numbers.get(tag, _OTHER_TAG) * 4
            if end - start == 1:
                places.append(within + _BEGINS + _ENDS)
            else:
                places.append(within + _BEGINS)
                places += [within] * (end - start - 2)
                places.append(within + _ENDS)
        of_characters = np.array(places)
        yield self._places.take(of_characters[first] & ~_ENDS | of_characters[last] & _ENDS)

    def _bigrams(self, analysis, first, last):
        bigrams = np.zeros(len(analysis.text) + 1, dtype=np.int32)  # before each character and behind the last one
        bigrams[1:-1] = self._bigram_numbers(analysis.pairs)
        yield bigrams[first]
        yield bigrams[last + 1]

    def _words(self, analysis, first, last):
        text, numbers = analysis.text, self._numbers["words"]
        covering: list = []
        for start, end, _ in analysis.segmentation:
            covering += [numbers.get(text[start:end], UNKNOWN)] * (end - start)
        yield np.array(covering)[first]
        begin, end_here = [0] * len(text), [0] * len(text)
        for start, end in analysis.longest_beginning.items():
            begin[start] = numbers.get(text[start:end], UNKNOWN)
        for end, start in analysis.longest_ending.items():
            end_here[end - 1] = numbers.get(text[start:end], UNKNOWN)
        yield np.array(begin)[first]
        yield np.array(end_here)[last]


def count_values(analysis, kind):
    """How often each value of a kind occurs in a text, a Counter; for ``"segmentation"`` each part of speech."""
    text = analysis.text
    if kind == "segmentation":
        return Counter(tag for _, _, tag in analysis.segmentation)
    if kind == "bigrams":
        return Counter(map(add, text, text[1:]))
    places = {(start, end) for start, end, _ in analysis.segmentation}
    places.update(analysis.longest_beginning.items())
    places.update((start, end) for end, start in analysis.longest_ending.items())
    return Counter(text[start:end] for start, end in places)


def segmentation_values(tags):
    """All values of ``"segmentation"`` with the given parts of speech."""
    return [f"{place}-{tag}" for tag in tags for place in PLACES]
