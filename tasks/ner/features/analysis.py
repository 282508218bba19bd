"""The words of one text, each part computed when it is first asked for."""

from tasks.ner.features.matching import code_points, pairs_of


class Analysis:
    """Words of a text.

    Args:
        text: string.
        table: :class:`~tasks.ner.features.matching.PairTable` of the three dictionaries below.
        words: the :class:`~tasks.ner.features.chinese_words.ChineseWords`, if anything of them is asked for.

    Attributes:
        codes: code points, int64 ``[characters]``.
        nodes, bigrams, begins: int32 ``[characters - 1]``, what the table says of each character with the one behind
            it: its node among the Chinese words, its number as a bigram, and whether an entity of the gazetteer begins
            with it.
    """

    def __init__(self, text, table, words):
        self.text = text
        self.codes = code_points(text)
        self.nodes, self.bigrams, self.begins = table(pairs_of(self.codes))
        self._words = words
        # not cached_property, for whose lock threads would wait
        self._dictionary = self._segmentation = None

    @property
    def dictionary(self):
        """What :meth:`ChineseWords.find` finds."""
        if self._dictionary is None:
            self._dictionary = self._words.find(self.text, self.nodes)
        return self._dictionary

    @property
    def segmentation(self):
        """List of (start, end, part of speech), which cover the text in its order."""
        if self._segmentation is None:
            self._segmentation = self._words.segment(self.text, self.codes, self.dictionary)
        return self._segmentation
