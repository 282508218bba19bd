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
    """What several dictionaries of pairs of characters say of the pairs of a text. One search in one small array misses
    the processor's cache less often than searches in dictionaries of strings do.

    Args:
        parts: for each dictionary (pairs, values, value of all other pairs): int64 and int ``[pairs]``.
    """

    def __init__(self, parts):
        # not np.unique, which is slow where most is in order already
        pairs_of_all = np.sort(np.concatenate([pairs for pairs, _, _ in parts]), kind="stable")
        known = pairs_of_all[np.diff(pairs_of_all, prepend=-1) > 0]
        self._pairs = np.append(known, np.iinfo(np.int64).max)  # no pair: the search ends within the array
        self._values = np.empty([len(self._pairs), len(parts)], dtype=np.int32)
        for column, (pairs, values, missing) in zip(self._values.T, parts):
            column[:] = missing
            column[known.searchsorted(pairs)] = values

    def __call__(self, pairs):
        """int32 ``[parts, pairs]``, the values of an array of pairs."""
        places = self._pairs.searchsorted(pairs)
        places[self._pairs.take(places) != pairs] = -1
        return self._values[places].T


NO_PAIRS = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32), 0)


class StringFinder:
    """Finds strings in texts. Threads may share it.

    Args:
        strings: dict from strings of one or more characters to anything but None.

    Attributes:
        beginnings: for :class:`PairTable`, 1 for the first two characters of a string.
    """

    def __init__(self, strings):
        self._singles = {string: value for string, value in strings.items() if len(string) == 1}
        # the strings from two characters on, and None for a prefix that is none of them
        self._values = {string[:end]: None for string in strings for end in range(2, len(string))}
        self._values.update((string, value) for string, value in strings.items() if len(string) > 1)
        pairs = pairs_of(code_points("".join(prefix for prefix in self._values if len(prefix) == 2)))[::2]
        self.beginnings = pairs, np.ones(len(pairs), dtype=np.int32), 0

    def __call__(self, text, begins):
        """All places of a text where one of the strings stands.

        Args:
            text: string.
            begins: int ``[characters - 1]``, :attr:`beginnings` of its pairs.

        Returns:
            List of (start, end, value of the string), ordered by start and end.
        """
        found = []
        values, size = self._values, len(text)
        for start in begins.nonzero()[0].tolist():
            end = start + 2
            string = text[start:end]
            while string in values:
                value = values[string]
                if value is not None:
                    found.append((start, end, value))
                if end == size:
                    break
                end += 1
                string = text[start:end]
        if self._singles:
            singles = [(at, at + 1, self._singles[char]) for at, char in enumerate(text) if char in self._singles]
            found = sorted(singles + found, key=lambda place: place[:2])
        return found


def is_storable(string):
    """Whether UTF-8 can hold the string: a lone surrogate cannot be written to a file."""
    try:
        string.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
