"""From GlobalPointer scores to spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from paddle import Tensor

# Score of pairs that are not spans: end before start, or padding. It fits into float16, and its exp is 0.
MASKED_LOGIT = -1e4


class ScoredSpan(NamedTuple):
    """A span of tokens ``start`` .. ``end`` (exclusive) of type number ``type``, with its logit ``score``.

    >>> ScoredSpan(start=0, end=3, type=1, score=2.5).end
    3
    """

    start: int
    end: int
    type: int
    score: float


def decode_spans(
    logits: Tensor | np.ndarray,
    threshold: float | Sequence[float] = 0.0,
    banded: bool = False,
    most: int | None = None,
) -> list[list[ScoredSpan]]:
    """All spans that score above ``threshold``; nested and overlapping spans are kept.

    Args:
        logits: ``[batch, types, seq, seq]``, tensor or array, as from :class:`GlobalPointer`; with ``banded``, from a
            head with ``max_span_length``: ``[batch, types, seq, max_span_length]``.
        threshold: scores above it are spans; one number, or one for each type. The loss trains for 0. Pairs that are
            not spans, of the score ``MASKED_LOGIT``, are never found.
        most: keep this many spans of each text, those with the highest scores; None keeps all.

    Returns:
        For each row of the batch a list of :class:`ScoredSpan`, ordered by start, end, type.

    >>> logits = np.full([1, 2, 4, 4], -1.0)  # a text of four tokens, two types
    >>> logits[0, 1, 0, 2] = 3.0  # tokens 0 to 2 as a span of type 1
    >>> decode_spans(logits)
    [[ScoredSpan(start=0, end=3, type=1, score=3.0)]]
    """
    logits = logits if isinstance(logits, np.ndarray) else logits.astype("float32").numpy()
    logits = logits if logits.dtype.kind == "f" else logits.astype(np.float32)
    batch, types = logits.shape[:2]
    thresholds = np.asarray(threshold, dtype=np.float64)
    if thresholds.shape not in ((), (types,)):
        raise ValueError(f"threshold must be a number or one for each of {types} types, got {list(thresholds.shape)}")
    bound = np.broadcast_to(np.maximum(thresholds, 0.99 * MASKED_LOGIT), [types])  # bfloat16 rounds MASKED_LOGIT up
    bound = bound.astype(logits.dtype)  # another dtype would copy logits to a wider one
    row, kind, start, column = np.nonzero(logits > bound[:, np.newaxis, np.newaxis])
    score = logits[row, kind, start, column]
    end = column + 1 + (start if banded else 0)
    kept = highest(row, score, most)
    order = kept[np.lexsort((kind[kept], end[kept], start[kept], row[kept]))]
    spans: list[list[ScoredSpan]] = [[] for _ in range(batch)]
    found = (column_of[order].tolist() for column_of in (row, start, end, kind, score))
    for text, *span in zip(*found):
        spans[text].append(ScoredSpan(*span))
    return spans


def highest(row: np.ndarray, score: np.ndarray, most: int | None) -> np.ndarray:
    """The indices of the ``most`` highest scores of each row of a batch; all of them, in order, for None."""
    if most is None:
        return np.arange(len(row))
    order = np.lexsort((-score, row))
    rank = np.arange(len(row)) - np.searchsorted(row[order], row[order])  # in its row
    return order[rank < most]
