"""Sequences whose label is which of two far markers stands first, and nothing else.

A sequence holds a stretch of the marker ``FIRST`` and one of ``SECOND``, each a sixteenth of the length, begun a
quarter to three quarters of the length apart, among fillers drawn at random. The label is 1 if ``FIRST`` stands before
``SECOND``, else 0.

The tokens without their order have the same distribution for both labels: a model without positions, to which a
sequence is a bag of tokens, cannot do better than chance, one half. The markers are a constant share of the sequence,
so that the length makes the way between them longer, and not the markers harder to find.
"""

from __future__ import annotations

import numpy as np

FIRST, SECOND = 1, 2  # 0 is padding, which does not occur
FILLERS = 16
VOCABULARY = 3 + FILLERS
LABELS = 2
STRETCHES = 16  # in a sequence
SHORTEST = 2 * STRETCHES


def make_sequences(length, count, seed):
    """Draw labeled sequences.

    Args:
        length: tokens of each sequence, ``SHORTEST`` or more.
        count: how many; half of them have the label 1.
        seed: the same seed gives the same sequences.

    Returns:
        (ids, labels): int64 ``[count, length]`` and ``[count]``.
    """
    random = np.random.default_rng(seed)
    ids = random.integers(VOCABULARY - FILLERS, VOCABULARY, [count, length])
    labels = random.permutation(np.arange(count) % LABELS)
    width = length // STRETCHES
    gaps = random.integers(length // 4, 3 * length // 4, count)
    left = random.integers(0, length - gaps - width + 1)
    place = np.arange(length)
    on_the_left = np.where(labels == 1, FIRST, SECOND)
    for begin, marker in ((left, on_the_left), (left + gaps, FIRST + SECOND - on_the_left)):
        inside = (place >= begin[:, None]) & (place < begin[:, None] + width)
        ids = np.where(inside, marker[:, None], ids)
    return ids.astype(np.int64), labels.astype(np.int64)
