"""Strings in a text: which characters begin one is answered for the whole text at once, from their first two."""

import numpy as np

_CODE_POINT_BITS = 21


def code_points(text):
    """int64 ``[characters]``."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)


def pairs_of(codes):
    """A number for each character with the one behind it.

    Args:
        codes: code points, int64 ``[characters]``.

    Returns:
        int64 ``[max(characters - 1, 0)]``.
    """
    return codes[:-1] << _CODE_POINT_BITS | codes[1:]


class PairTable:
    """Finds pairs of characters among those of a table. A binary search in one small array misses the processor's cache
    less often than dictionaries of strings do.

    Args:
        pairs: int64 ``[pairs]`` of :func:`pairs_of`, ascending, each once.
    """

    def __init__(self, pairs):
        self._pairs = np.append(pairs, np.iinfo(np.int64).max)  # no pair: the search ends within the array

    def __call__(self, pairs):
        """Of an array of pairs the numbers of those that the table has, and their numbers in the table, int64."""
        places = self._pairs.searchsorted(pairs)
        found = (self._pairs.take(places) == pairs).nonzero()[0]
        return found, places.take(found)


class StringFinder:
    """Finds strings in texts. Threads may share it.

    Args:
        strings: iterable of strings of one or more characters.
    """

    def __init__(self, strings):
        strings = frozenset(strings)
        self._single = {string for string in strings if len(string) == 1}
        # the strings from two characters on; False for a prefix that is none of them
        self._is_string = {string[:end]: False for string in strings for end in range(2, len(string))}
        self._is_string.update((string, True) for string in strings if len(string) > 1)
        pairs = pairs_of(code_points("".join(sorted(prefix for prefix in self._is_string if len(prefix) == 2))))[::2]
        self._pairs = PairTable(pairs)

    def __call__(self, text, pairs):
        """All places of a text where one of the strings stands.

        Args:
            text: string.
            pairs: its :func:`pairs_of`.

        Returns:
            List of (start, end), ordered by start and end.
        """
        found = []
        is_string, size = self._is_string, len(text)
        for start in self._pairs(pairs)[0].tolist():
            end = start + 2
            has_end = is_string.get(text[start:end])
            while has_end is not None:
                if has_end:
                    found.append((start, end))
                if end == size:
                    break
                end += 1
                has_end = is_string.get(text[start:end])
        if not self._single:
            return found
        return sorted(found + [(at, at + 1) for at, char in enumerate(text) if char in self._single])


def is_storable(string):
    """Whether UTF-8 can hold the string: a lone surrogate cannot be written to a file."""
    try:
        string.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
