"""The words of one text, each part computed when it is first asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from tasks.ner.features.chinese_words import ChineseWords
from tasks.ner.features.matching import code_points, pairs_of


@dataclass
class Analysis:
    """Words of a text.

    Args:
        text: string.
        words: gives the words; it is called when they are first needed.
    """

    text: str
    words: Callable[[], ChineseWords]

    @cached_property
    def codes(self):
        """Code points, int64 ``[characters]``."""
        return code_points(self.text)

    @cached_property
    def pairs(self):
        """int64 ``[characters - 1]`` of :func:`pairs_of`."""
        return pairs_of(self.codes)

    @cached_property
    def dictionary(self):
        """Of the dictionary's words of two or more characters a dict from the character at which some begin to a list of
        (end, (score, part of speech)); both ordered."""
        return self.words().find(self.text, self.pairs)

    @cached_property
    def segmentation(self):
        """List of (start, end, part of speech), which cover the text in its order."""
        return self.words().segment(self.text, self.codes, self.dictionary)

    @cached_property
    def longest_beginning(self):
        """dict from a character to the end of the longest dictionary word that begins there."""
        return {start: words[-1][0] for start, words in self.dictionary.items()}

    @cached_property
    def longest_ending(self):
        """dict from the end of dictionary words to the start of the longest of them."""
        longest: dict = {}
        for start, words in self.dictionary.items():
            for end, _ in words:
                longest.setdefault(end, start)
        return longest
