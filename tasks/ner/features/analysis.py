"""What jieba says of one text, each part computed when it is first asked for."""

from dataclasses import dataclass
from functools import cached_property

from tasks.ner.features.chinese_words import dictionary_words, segment


@dataclass
class Analysis:
    """Words of a text."""

    text: str

    @cached_property
    def segmentation(self):
        """:class:`~tasks.ner.features.chinese_words.Word` of the segmentation, in order."""
        return segment(self.text)

    @cached_property
    def dictionary(self):
        """:class:`~tasks.ner.features.chinese_words.Word` of jieba's dictionary, ordered by start and end."""
        return dictionary_words(self.text)

    @cached_property
    def covering(self):
        """For each character its word in the segmentation, or None."""
        words = [None] * len(self.text)
        for word in self.segmentation:
            words[word.start : word.end] = [word] * (word.end - word.start)
        return words

    @cached_property
    def longest_beginning(self):
        """dict from a character to the end of the longest dictionary word that begins there."""
        return {word.start: word.end for word in self.dictionary}  # the longest comes last

    @cached_property
    def longest_ending(self):
        """dict from the end of dictionary words to the start of the longest of them."""
        return {word.end: word.start for word in reversed(self.dictionary)}  # the longest comes last
