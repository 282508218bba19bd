"""The words of one text, each part computed when it is first asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from tasks.ner.features.chinese_words import ChineseWords


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
    def found(self):
        """What :meth:`ChineseWords.find` finds."""
        return self.words().find(self.text)

    @cached_property
    def segmentation(self):
        """List of (start, end, part of speech), which cover the text in its order."""
        return self.words().segment(self.text, self.found)

    @cached_property
    def dictionary(self):
        """List of (start, end, part of speech) of the dictionary's words of two or more characters, ordered by start and
        end."""
        return [
            (start, end, tag)
            for start, of_start in enumerate(self.found)
            for end, (_, tag) in of_start
            if end - start > 1
        ]

    @cached_property
    def longest_beginning(self):
        """dict from a character to the end of the longest dictionary word that begins there."""
        return {start: end for start, end, _ in self.dictionary}  # the longest comes last

    @cached_property
    def longest_ending(self):
        """dict from the end of dictionary words to the start of the longest of them."""
        return {end: start for start, end, _ in reversed(self.dictionary)}  # the longest comes last
