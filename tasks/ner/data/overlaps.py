"""Which spans of a text overlap, in n log n steps for n spans. Standard library only."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

Span = tuple[int, int]


def nested_spans(spans: list[Span]) -> list[tuple[int, int]]:
    """Pairs (inner, outer) of places in ``spans``: each span inside another, with the first span around it.

    First is what a loop over all pairs would see first, and in its order; so it is in :func:`crossing_spans`.

    Args:
        spans: half-open (start, end), not empty, sorted; equal ones are not inside each other.
    """
    furthest = list(accumulate((end for _, end in spans), max))
    pairs = []
    for place, (start, end) in enumerate(spans):
        around = bisect_left(furthest, end)
        if spans[around][0] == start:  # none that begins earlier: the next longer one
            around = bisect_right(spans, (start, end))
        if around < len(spans) and (around < place or spans[around][0] == start):
            pairs.append((place, around))
    return sorted(pairs, key=_in_order)


def crossing_spans(spans: list[Span]) -> list[tuple[int, int]]:
    """Pairs (one, other) of places in ``spans``: each span that overlaps another in part, with the first of these.

    Args:
        spans: as for :func:`nested_spans`.
    """
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    by_end = sorted(range(len(spans)), key=ends.__getitem__)
    sorted_ends = [ends[place] for place in by_end]
    first_place = _minima(by_end)
    # Of the spans that begin later, those with none before them that ends as late; the first one is the last here.
    stack: list[int] = []
    negative_ends: list[int] = []
    pushed = len(spans)
    pairs = []
    for place in reversed(range(len(spans))):
        start, end = spans[place]
        while pushed > bisect_right(starts, start):
            pushed -= 1
            while stack and ends[stack[-1]] <= ends[pushed]:
                stack.pop()
                negative_ends.pop()
            stack.append(pushed)
            negative_ends.append(-ends[pushed])
        earlier = first_place(bisect_right(sorted_ends, start), bisect_left(sorted_ends, end))
        later = bisect_left(negative_ends, -end) - 1
        if earlier is not None and starts[earlier] < start:
            pairs.append((place, earlier))
        elif later >= 0 and starts[stack[later]] < end:
            pairs.append((place, stack[later]))
    return sorted(pairs, key=_in_order)


def _in_order(pair):
    """As a loop over all pairs meets them; of a pair the earlier span comes first."""
    return min(pair), max(pair), pair[0]


def _minima(values):
    """A function of (start, end) that gives the least of ``values[start:end]``, None if that is empty."""
    levels, width = [values], 1  # the least of 1, 2, 4, ... values from each place on
    while 2 * width <= len(values):
        below = levels[-1]
        levels.append([min(one, other) for one, other in zip(below, below[width:])])
        width *= 2

    def minimum(start, end):
        if start >= end:
            return None
        level = (end - start).bit_length() - 1
        return min(levels[level][start], levels[level][end - (1 << level)])

    return minimum
