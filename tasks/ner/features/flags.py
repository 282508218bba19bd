"""Features that a token has or not: which spans of which classes it begins, is inside of, or ends."""

import numpy as np

from tasks.ner.features.chinese_words import TAG_CLASSES, tag_class

PLACES = 3  # begin, inside, end
LENGTHS = 3  # 2, 3, 4 or more characters
DICTIONARY_CLASSES = len(TAG_CLASSES) * LENGTHS


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
        """uint8 ``[tokens, bytes]``, eight flags in a byte as ``np.packbits`` has them.

        Args:
            spans: iterable of (start, end, class), half-open; a span of one character begins and ends with it.
            size: characters of the text.
            tokens: :class:`~tasks.ner.features.token_features.TokenPlaces`.
        """
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
