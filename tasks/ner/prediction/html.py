"""Texts with their entities as one HTML page that needs nothing else: no script, no other file.

An entity is a box around its characters with its type and probability behind them; boxes nest as the entities do. HTML
cannot nest two entities that cross, so that the one that ends later is drawn in pieces, open with a dashed edge
where it continues. Colors tell the types apart at a glance; the types' names do so without color.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import NamedTuple, TextIO

from tasks.ner.examples import Entity, entities_of
from tasks.ner.spans import probability

# The style sheet. A type sets --c, its color, --ink on it and --edge; a mark sets --h, the boxes stacked in it. Types
# and probabilities are generated content: they are not in the way of searching or copying the text.
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
# Red, green and blue, and the ink that is read best on it. Each has a contrast of at least 3 with the light and with
# the dark background. They keep apart in normal vision and in simulated protanopia, deuteranopia and tritanopia
# (Machado et al. 2009): distance in OKLab 0.087 or more.
WHITE, BLACK = "#ffffff", "#000000"
COLORS = (
    ("0 119 204", WHITE), ("221 119 0", BLACK), ("221 0 170", BLACK), ("0 119 34", WHITE), ("136 17 255", WHITE),
    ("221 0 0", WHITE), ("51 153 238", BLACK), ("136 85 119", WHITE), ("187 136 136", BLACK), ("170 102 102", BLACK),
)  # fmt: skip
# When the colors are used up they come again with the next kind of edge.
EDGES = ("1.5px solid", "1.5px dotted", "3px double")
# Characters that a page cannot show, drawn by their symbols.
_CONTROL_SYMBOLS = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"} | {0x7F: "\u2421"}


class Piece(NamedTuple):
    """A part of an entity that nests with all other pieces."""

    start: int
    end: int
    entity: Entity
    is_first: bool
    is_last: bool


def write_html(file: TextIO, records: list[dict], types: Iterable[str], title: str) -> None:
    """Write a page.

    Args:
        file: open for text.
        records: list of records as from :class:`tasks.ner.prediction.predictor.NerPredictor`.
        types: names of the types. Those that occur are the legend; their order in it gives them their colors.
        title: of the page.
    """
    counts = Counter(entity["type"] for record in records for entity in record["entities"])
    counts = {kind: counts[kind] for kind in types if counts[kind]}
    number_of = {kind: number for number, kind in enumerate(counts)}
    summary = f"{_count(len(records), 'text')}, {_count(sum(counts.values()), 'entity', 'entities')}"
    file.write(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escaped(title)}</title>\n<style>\n{STYLE}{_type_styles(len(counts))}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{_escaped(title)}</h1>\n<p>{summary}. A box is an entity: its type, and its probability. "
        "Point at a box for its offsets and its score, a logit.</p>\n<ul>\n"
    )
    for number, (kind, count) in enumerate(counts.items()):
        file.write(f'<li class="t{number}"><span class="name">{_escaped(kind)}</span> {count:,}</li>\n')
    file.write("</ul>\n</header>\n<main>\n")
    for number, record in enumerate(records, 1):
        file.write(
            f'<section><a id="text{number}" href="#text{number}">{number}</a>'
            f"{_paragraph(record, number_of)}</section>\n"
        )
    file.write("</main>\n</body>\n</html>\n")


def nested_pieces(entities: list[Entity]) -> list[Piece]:
    """Cut entities into pieces of which any two are nested or apart.

    Args:
        entities: of one text.

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
        cut = min([-negative_end, *open_ends[-1:]])
        if cut < -negative_end:
            heapq.heappush(waiting, (cut, negative_end, number, False))
        pieces.append(Piece(start, cut, entities[number], is_first, cut == -negative_end))
        open_ends.append(cut)
    return pieces


def _paragraph(record, number_of):
    """The text of a record with its boxes."""
    text, parts, position, open_pieces = record["text"], [], 0, []

    def advance(to):
        nonlocal position
        parts.append(_escaped(text[position:to]))
        position = to

    def close(until):
        while open_pieces and open_pieces[-1].end <= until:
            advance(open_pieces.pop().end)
            parts.append("</mark>")

    pieces = nested_pieces(entities_of(record))
    heights = _heights(pieces)
    for piece, height in zip(pieces, heights):
        close(piece.start)
        advance(piece.start)
        parts.append(_opening(piece, height, text, number_of))
        open_pieces.append(piece)
    close(len(text))
    advance(len(text))
    lines = f' style="--lines:{max(heights)}"' if any(heights) else ""
    return f'<p lang="zh"{lines}>{"".join(parts)}</p>'


def _opening(piece, height, text, number_of):
    start, end, kind, score, certainty = piece.entity
    certainty = probability(score, 1.0) if certainty is None else certainty
    classes = [f"t{number_of[kind]}"]
    classes += [] if piece.is_first else ["goes-on-left"]
    classes += [] if piece.is_last else ["goes-on-right"]
    title = (
        f"{kind}: {text[start:end]}\ncharacters {start} to {end} (exclusive)\n"
        f"probability {certainty:.3f}, score {score:.2f}"
    )
    return (
        f'<mark class="{" ".join(classes)}" style="--h:{height}" data-type="{_escaped(kind)}" '
        f'data-probability="{certainty:.2f}" title="{_escaped(title)}">'
    )


def _heights(pieces):
    """For each piece how many boxes are stacked in it: an outer box is drawn higher than those within."""
    parents, open_pieces = [], []
    for number, piece in enumerate(pieces):
        while open_pieces and pieces[open_pieces[-1]].end <= piece.start:
            open_pieces.pop()
        parents.append(open_pieces[-1] if open_pieces else None)
        open_pieces.append(number)
    heights = [0] * len(pieces)
    for number, parent in reversed(list(enumerate(parents))):
        if parent is not None:
            heights[parent] = max(heights[parent], heights[number] + 1)
    return heights


def _type_styles(count):
    lines = []
    for number in range(count):
        color, ink = COLORS[number % len(COLORS)]
        edge = EDGES[number // len(COLORS) % len(EDGES)]
        lines.append(f".t{number}{{--c:{color};--ink:{ink};--edge:{edge}}}\n")
    return "".join(lines)


def _escaped(text):
    # a browser reads CR as LF, and CR LF as one of them, unless it is written as a reference
    return escape(text.translate(_CONTROL_SYMBOLS)).replace("\r", "&#13;")


def _count(number, singular, plural=None):
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
