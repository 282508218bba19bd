"""Entities of a text that overlap. Standard library only."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from itertools import groupby

from tasks.ner.examples import Entity

Pairs = list[tuple[Entity, Entity]]


def overlapping_pairs(entities: Iterable[Entity]) -> tuple[Pairs, Pairs]:
    """Entities inside another one, and entities that overlap an earlier one in part.

    Returns:
        (nested, crossing): ``nested`` has (inner, outer) once for each inner entity, ``crossing`` has (entity, earlier
        one) once for each such entity, whatever the number of its partners. Equal spans of two types are neither.
    """
    nested: Pairs = []
    crossing: Pairs = []
    outer = None  # of the entities so far, the one that ends last
    open_ones: list[tuple[int, Entity]] = []  # (end, entity) of those so far that end after the start, by their end
    ordered = sorted(entities, key=lambda entity: (entity.start, -entity.end, entity.type))
    for (start, end), group in groupby(ordered, key=lambda entity: entity[:2]):
        same = list(group)
        del open_ones[: bisect_right(open_ones, start, key=lambda item: item[0])]
        if outer is not None and end <= outer.end:
            nested += [(entity, outer) for entity in same]
        if open_ones and open_ones[0][0] < end:
            crossing += [(entity, open_ones[0][1]) for entity in same]
        insort(open_ones, (end, same[0]))
        if outer is None or end > outer.end:
            outer = same[0]
    return nested, crossing
