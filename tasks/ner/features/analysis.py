"""The words of one text, each part computed when it is first asked for."""

from tasks.ner.features.matching import code_points, pairs_of


class Analysis:
    """Words of a text.

    Args:
        text: string.
        words: function that gives the :class:`~tasks.ner.features.chinese_words.ChineseWords`; called when they are first
            needed.

    Attributes:
        codes: code points, int64 ``[characters]``.
        pairs: int64 ``[characters - 1]`` of :func:`~tasks.ner.features.matching.pairs_of`.
    """

    def __init__(self, text, words):
        self.text = text
        self.codes = code_points(text)
        self.pairs = pairs_of(self.codes)
        self._words = words
        # not cached_property, for whose lock threads would wait
        self._dictionary = self._segmentation = None

    @property
    def dictionary(self):
        """Of the dictionary's words of two or more characters a dict from the character at which some begin to a list of
        (end, (score, part of speech)); both ordered."""
        if self._dictionary is None:
            self._dictionary = self._words().find(self.text, self.pairs)
        return self._dictionary

    @property
    def segmentation(self):
        """List of (start, end, part of speech), which cover the text in its order."""
        if self._segmentation is None:
            self._segmentation = self._words().segment(self.text, self.codes, self.dictionary)
        return self._segmentation
