"""Entities as boxes around their characters.

Boxes nest as the entities do. HTML cannot nest two entities that cross, nor one that goes on in the next paragraph, so
that such an entity is drawn in pieces, open where it goes on, with one label behind the last.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Optional

from tasks.ner.examples import Entity
from tasks.ner.page.sections import Span
from tasks.ner.spans import probability


class Piece(NamedTuple):
    """A part of an entity that nests with all other pieces."""

    start: int
    end: int
    entity: Entity
    is_first: bool
    is_last: bool
    parent: Optional[int]  # number of the piece in which it directly lies


class Box(NamedTuple):
    """A piece as it is drawn."""

    entity: Entity
    is_first: bool
    is_last: bool
    height: int  # boxes stacked in it
    certainty: float
    anchor: Optional[str]  # id that links lead to


class Paragraph(NamedTuple):
    """A paragraph as it is drawn: strings, each box where it opens, None where the innermost open box closes."""

    height: int  # of its highest box
    parts: list[str | Box | None]


def nested_pieces(entities: list[Entity], cuts: Sequence[int] = ()) -> list[Piece]:
    """Cut entities into pieces of which any two are nested or apart.

    Args:
        entities: of one text.
        cuts: characters, ordered, before which a piece ends.

    Returns:
        The pieces in the order in which their boxes open: outer before inner.
    """
    waiting = [(entity.start, -entity.end, number, True) for number, entity in enumerate(entities)]
    heapq.heapify(waiting)
    pieces: list[Piece] = []
    around: list[int] = []  # numbers of the pieces that are open
    while waiting:
        start, negative_end, number, is_first = heapq.heappop(waiting)
        while around and pieces[around[-1]].end <= start:
            around.pop()
        following = bisect.bisect_right(cuts, start)
        ends = [pieces[outer].end for outer in around[-1:]]
        end = min([-negative_end, *ends, *cuts[following : following + 1]])
        if end < -negative_end:
            heapq.heappush(waiting, (end, negative_end, number, False))
        parent = around[-1] if around else None
        around.append(len(pieces))
        pieces.append(Piece(start, end, entities[number], is_first, end == -negative_end, parent))
    return pieces


def drawn_paragraphs(
    text: str, entities: list[Entity], paragraphs: Sequence[Span], anchors: Mapping[Entity, str]
) -> Iterator[Paragraph]:
    """Each paragraph of a text.

    Args:
        text: the text.
        entities: of it, ordered.
        paragraphs: its characters, cut somehow.
        anchors: of the entities that have one.
    """
    pieces = nested_pieces(entities, [end for _, end in paragraphs])
    heights = _heights(pieces)
    first = 0
    for start, end in paragraphs:
        last = first
        while last < len(pieces) and pieces[last].start < end:
            last += 1
        numbers, first = range(first, last), last
        boxes = [(pieces[one].start, pieces[one].end, _box(pieces[one], heights[one], anchors)) for one in numbers]
        yield Paragraph(max((heights[one] for one in numbers), default=0), list(_parts(text, start, end, boxes)))


def _parts(text, start, end, boxes):
    ends: list[int] = []  # of the open boxes
    for opens_at, closes_at, box in (*boxes, (end, end, None)):
        while ends and ends[-1] <= opens_at:
            yield text[start : ends[-1]]
            start = ends.pop()
            yield None
        yield text[start:opens_at]
        start = opens_at
        if box is not None:
            yield box
            ends.append(closes_at)


def _box(piece, height, anchors):
    entity = piece.entity
    certainty = probability(entity.score, 1.0) if entity.probability is None else entity.probability
    anchor = anchors.get(entity) if piece.is_first else None
    return Box(entity, piece.is_first, piece.is_last, height, certainty, anchor)


def _heights(pieces):
    """For each piece how many boxes are stacked in it: an outer box is drawn higher than those within."""
    heights = [0] * len(pieces)
    for number in reversed(range(len(pieces))):
        parent = pieces[number].parent
        if parent is not None:
            heights[parent] = max(heights[parent], heights[number] + 1)
    return heights
