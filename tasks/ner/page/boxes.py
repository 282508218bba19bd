"""Entities as boxes around their characters.

Boxes nest as the entities do. HTML cannot nest two entities that cross, nor one that goes on in the next paragraph, so
that such an entity is drawn in pieces, open where it goes on, with one label behind the last.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from tasks.ner.examples import Entity
from tasks.ner.page.sections import Span
from tasks.ner.spans import probability

# Characters that a page cannot show, drawn by their symbols.
_CONTROL_SYMBOLS = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"} | {0x7F: "\u2421"}


class Piece(NamedTuple):
    """A part of an entity that nests with all other pieces."""

    start: int
    end: int
    entity: Entity
    is_first: bool
    is_last: bool


def escaped(text: str) -> str:
    """A text as HTML, also for attributes in double quotes."""
    # a browser reads CR as LF, and CR LF as one of them, unless it is written as a reference
    return escape(text.translate(_CONTROL_SYMBOLS)).replace("\r", "&#13;")


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
    pieces, open_ends = [], []
    while waiting:
        start, negative_end, number, is_first = heapq.heappop(waiting)
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        following = bisect.bisect_right(cuts, start)
        end = min([-negative_end, *open_ends[-1:], *cuts[following : following + 1]])
        if end < -negative_end:
            heapq.heappush(waiting, (end, negative_end, number, False))
        pieces.append(Piece(start, end, entities[number], is_first, end == -negative_end))
        open_ends.append(end)
    return pieces


def drawn_paragraphs(
    text: str,
    entities: list[Entity],
    paragraphs: Sequence[Span],
    number_of: dict[str, int],
    anchor_of: Callable[[Entity], str | None],
    words: Mapping[str, str],
    calibrated: bool,
) -> Iterator[str]:
    """Each paragraph of a text as HTML.

    Args:
        text: the text.
        entities: of it, ordered.
        paragraphs: its characters, cut somehow.
        number_of: of the types, which have a style each.
        anchor_of: the id that links lead to, of an entity that has one.
        words: of the page's language.
        calibrated: whether what an entity has as probability is one.
    """
    pieces = nested_pieces(entities, [end for _, end in paragraphs])
    heights = _heights(pieces)
    next_piece = 0
    for start, end in paragraphs:
        first = next_piece
        while next_piece < len(pieces) and pieces[next_piece].start < end:
            next_piece += 1
        of_paragraph = slice(first, next_piece)
        openings = [
            _opening(piece, height, text, number_of, anchor_of, words, words["probability" if calibrated else "score"])
            for piece, height in zip(pieces[of_paragraph], heights[of_paragraph])
        ]
        yield _paragraph(text, start, end, pieces[of_paragraph], openings, max(heights[of_paragraph], default=0))


def _paragraph(text, start, end, pieces, openings, height):
    parts, position, open_pieces = [], start, []

    def advance(to):
        nonlocal position
        parts.append(escaped(text[position:to]))
        position = to

    def close(until):
        while open_pieces and open_pieces[-1].end <= until:
            advance(open_pieces.pop().end)
            parts.append("</mark>")

    for piece, opening in zip(pieces, openings):
        close(piece.start)
        advance(piece.start)
        parts.append(opening)
        open_pieces.append(piece)
    close(end)
    advance(end)
    lines = f' style="--lines:{height}"' if height else ""
    return f'<p lang="zh"{lines}>{"".join(parts)}</p>'


def _opening(piece, height, text, number_of, anchor_of, words, name):
    start, end, kind, score, certainty = piece.entity
    certainty = probability(score, 1.0) if certainty is None else certainty
    classes = [f"t{number_of[kind]}"]
    classes += [] if piece.is_first else ["goes-on-left"]
    classes += [] if piece.is_last else ["goes-on-right"]
    anchor = anchor_of(piece.entity) if piece.is_first else None
    link = f' id="{anchor}"' if anchor else ""
    offsets = words["offsets"].format(start=start, end=end)
    title = f"{kind}: {text[start:end]}\n{offsets}\n{name} {certainty:.3f}"
    return (
        f'<mark class="{" ".join(classes)}"{link} style="--h:{height}" '
        f'data-type="{escaped(kind)}" data-certainty="{certainty:.2f}" title="{escaped(title)}">'
    )


def parents_of(pieces: Sequence[Piece]) -> list[int | None]:
    """For each of the pieces of :func:`nested_pieces` the number of that in which it directly lies, if any."""
    parents: list[int | None] = []
    open_pieces: list[int] = []
    for number, piece in enumerate(pieces):
        while open_pieces and pieces[open_pieces[-1]].end <= piece.start:
            open_pieces.pop()
        parents.append(open_pieces[-1] if open_pieces else None)
        open_pieces.append(number)
    return parents


def _heights(pieces):
    """For each piece how many boxes are stacked in it: an outer box is drawn higher than those within."""
    heights = [0] * len(pieces)
    for number, parent in reversed(list(enumerate(parents_of(pieces)))):
        if parent is not None:
            heights[parent] = max(heights[parent], heights[number] + 1)
    return heights
