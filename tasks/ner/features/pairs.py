"""Pairs of neighboring characters as numbers, looked up for a whole text at once.

A search in one small array misses the processor's cache less often than a lookup of each string in a dictionary.
"""

import numpy as np


def pair_numbers(first, second):
    """A number for each pair of the code points ``first`` and ``second``, int64 of their shape."""
    return first.astype(np.int64) << 32 | second


def pairs_of(text):
    """The number of each character of a text with the next one, int64 ``[characters - 1]``."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return pair_numbers(codes[:-1], codes[1:])


class PairTable:
    """Values of pairs of characters: distinct numbers of pairs, or strings of two characters, with an integer for each
    of them and ``other`` for all other pairs."""

    def __init__(self, pairs, values, other):
        if not isinstance(pairs, np.ndarray):
            pairs = pairs_of("".join(pairs))[::2]
        order = pairs.argsort(kind="stable")
        self._pairs = np.append(pairs[order], np.iinfo(np.int64).max)  # no pair, so that a search ends in the array
        self._values = np.append(np.array(values, dtype=np.int32)[order], np.int32(other))

    def __call__(self, pairs):
        """The values of an array of pairs, int32 of its shape."""
        places = self._pairs.searchsorted(pairs)
        places[self._pairs[places] != pairs] = -1
        return self._values[places]
