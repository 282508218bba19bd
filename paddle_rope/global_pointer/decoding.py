"""From GlobalPointer scores to spans."""

from typing import NamedTuple

import numpy as np
import paddle


class ScoredSpan(NamedTuple):
    """A span of tokens ``start`` .. ``end`` (exclusive) of type number ``type``, with its logit ``score``."""

    start: int
    end: int
    type: int
    score: float


def decode_spans(logits, threshold=0.0):
    """All spans that score above ``threshold``; nested and overlapping spans are kept.

    Args:
        logits: ``[batch, types, seq, seq]``, tensor or array, as from :class:`GlobalPointer`.
        threshold: a score above it makes a span; 0 is what the loss trains for.

    Returns:
        For each row of the batch a list of :class:`ScoredSpan`, ordered by start, end, type.
    """
    logits = logits.astype("float32").numpy() if isinstance(logits, paddle.Tensor) else np.asarray(logits)
    spans = [[] for _ in range(logits.shape[0])]
    found = np.nonzero(logits > threshold)
    for (row, kind, start, end), score in zip(np.stack(found, axis=1).tolist(), logits[found].tolist()):
        spans[row].append(ScoredSpan(start, end + 1, kind, score))
    return [sorted(row) for row in spans]
