"""Entities as boxes around their characters.

Boxes nest as the entities do. HTML cannot nest two entities that cross, nor one that goes on in the next paragraph, so
that such an entity is drawn in pieces, open where it goes on, with one label behind the last.
"""

import bisect
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tasks.ner.examples import Entity
from tasks.ner.page.contents import Span

# Red, green and blue, and the ink that is read best on it; the vivid ones first, and neighbors far apart. Each has a
# contrast of at least 3 with the light and with the dark background. They keep apart in normal vision and in simulated
# protanopia, deuteranopia and tritanopia, as the tests of commit c625aa7b computed.
WHITE, BLACK = "#ffffff", "#000000"
COLORS = (
    ("0 119 204", WHITE), ("221 119 0", BLACK), ("136 17 255", WHITE), ("221 0 0", WHITE), ("51 153 238", BLACK),
    ("0 119 34", WHITE), ("221 0 170", BLACK), ("136 85 119", WHITE), ("187 136 136", BLACK), ("170 102 102", BLACK),
)  # fmt: skip
# When the colors are used up they come again with the next kind of edge.
EDGES = ("1.5px solid", "1.5px dotted", "3px double")


@dataclass
class Piece:
    """A part of an entity that nests with all other pieces."""

    start: int
    end: int
    entity: Entity
    is_first: bool
    is_last: bool
    height: int = 0  # boxes stacked in it: an outer box is drawn higher than those within


class Paragraph(NamedTuple):
    """A paragraph as it is drawn: strings, each piece where its box opens, None where the innermost open box closes."""

    height: int  # of its highest box
    parts: list[str | Piece | None]


def nested_pieces(entities: list[Entity], cuts: Sequence[int] = ()) -> list[Piece]:
    """Cut the entities of a text into pieces of which any two are nested or apart, and which end before each of the
    ordered ``cuts``, in the order in which their boxes open: outer before inner."""
    waiting = [(entity.start, -entity.end, number, True) for number, entity in enumerate(entities)]
    heapq.heapify(waiting)
    pieces: list[Piece] = []
    around: list[Piece] = []  # the pieces that are open, outer before inner
    while waiting:
        start, negative_end, number, is_first = heapq.heappop(waiting)
        while around and around[-1].end <= start:
            _close(around)
        following = bisect.bisect_right(cuts, start)
        end = min([-negative_end, *(outer.end for outer in around[-1:]), *cuts[following : following + 1]])
        is_last = end == -negative_end
        if not is_last:
            heapq.heappush(waiting, (end, negative_end, number, False))
        pieces.append(Piece(start, end, entities[number], is_first, is_last))
        around.append(pieces[-1])
    while around:
        _close(around)
    return pieces


def _close(around):
    closed = around.pop()
    if around:
        around[-1].height = max(around[-1].height, closed.height + 1)


def drawn_paragraphs(text: str, entities: list[Entity], paragraphs: Sequence[Span]) -> Iterator[Paragraph]:
    """Each paragraph of a text, of which ``paragraphs`` are the characters, with the ordered entities in it."""
    pieces = nested_pieces(entities, [end for _, end in paragraphs])
    first = 0
    for start, end in paragraphs:
        last = first
        while last < len(pieces) and pieces[last].start < end:
            last += 1
        height = max((piece.height for piece in pieces[first:last]), default=0)
        yield Paragraph(height, list(_parts(text, start, end, pieces[first:last])))
        first = last


def _parts(text, start, end, pieces):
    ends: list[int] = []  # of the open boxes
    for opens_at, piece in (*((piece.start, piece) for piece in pieces), (end, None)):
        while ends and ends[-1] <= opens_at:
            yield text[start : ends[-1]]
            start = ends.pop()
            yield None
        yield text[start:opens_at]
        start = opens_at
        if piece is not None:
            yield piece
            ends.append(piece.end)


def look_of(number: int) -> dict[str, str]:
    """``color``, ``ink`` and ``edge`` of the type with this number, as the style sheet has them."""
    color, ink = COLORS[number % len(COLORS)]
    return {"color": color, "ink": ink, "edge": EDGES[number // len(COLORS) % len(EDGES)]}
