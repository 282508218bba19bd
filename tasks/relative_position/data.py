"""Sequences whose label is the relative position of two markers, and nothing else.

A sequence holds the markers ``FIRST`` and ``SECOND`` once each, at least a quarter of the length apart, among fillers
drawn at random.

* ``order``: 1 if ``FIRST`` stands before ``SECOND``, else 0.
* ``distance``: both markers are ``FIRST``; the label is which of ``DISTANCES`` equal steps they are apart.

The tokens without their order have the same distribution for every label: a model without positions, to which a
sequence is a bag of tokens, cannot do better than chance, 1 / number of labels.
"""

from __future__ import annotations

import numpy as np

FIRST, SECOND = 1, 2  # 0 is padding, which does not occur
FILLERS = 16
VOCABULARY = 3 + FILLERS
DISTANCES = 4
LABELS = {"order": 2, "distance": DISTANCES}
SHORTEST = 4 * (DISTANCES + 1)


def make_sequences(task, length, count, seed):
    """Draw labelled sequences.

    Args:
        task: a key of ``LABELS``.
        length: tokens of each sequence, ``SHORTEST`` or more.
        count: how many; each label equally often, if the number of labels divides it.
        seed: the same seed gives the same sequences.

    Returns:
        (ids, labels): int64 ``[count, length]`` and ``[count]``.
    """
    random = np.random.default_rng(seed)
    ids = random.integers(VOCABULARY - FILLERS, VOCABULARY, [count, length])
    labels = random.permutation(np.arange(count) % LABELS[task])
    if task == "order":
        gaps = random.integers(length // 4, length - length // 4, count)
    else:
        gaps = (labels + 1) * (length // (DISTANCES + 1))
    left = random.integers(0, length - gaps)
    rows = np.arange(count)
    ids[rows, left] = np.where(labels == 1, FIRST, SECOND) if task == "order" else FIRST
    ids[rows, left + gaps] = np.where(labels == 1, SECOND, FIRST) if task == "order" else FIRST
    return ids.astype(np.int64), labels.astype(np.int64)
