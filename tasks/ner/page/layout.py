"""How texts are laid out on a page: sections and paragraphs, a table of contents, a list of the entities with links to
their first mentions, and entities as boxes around their characters.

Boxes nest as the entities do. HTML cannot nest two entities that cross, or one that continues in the next paragraph, so
such an entity is drawn in pieces, open where it continues, with one label after the last.
"""

import bisect
import heapq
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from paddle_rope.tasks.common.texts.documents import cut_at_sentences
from paddle_rope.tasks.ner.examples import Entity

SECTION_CHARACTERS = 2000
# A line that is a heading: a numbered part, chapter or section, or a heading of Markdown.
_NUMBER = "[〇零一二三四五六七八九十百千两0-9０-９]{1,9}"
_HEADING = re.compile(
    rf"[ \t\u3000]*(?:第{_NUMBER}[部卷篇编編章回节節话話幕集]|(?:Part|Book|Chapter|Section) [0-9IVXLC]+\b|#{{1,6}} )"
)
_LONGEST_HEADING = 60

Span = tuple[int, int]  # half-open characters of the text
LABEL_CHARACTERS = 24


def sections_of(text: str) -> list[list[Span]]:
    """The sections of a text, each the list of its paragraphs; together they cover it.

    A paragraph is a line with its line end. A paragraph longer than twice ``SECTION_CHARACTERS`` is cut at sentence
    ends, or anywhere if there are none. A section begins with a heading, or with the next paragraph once the section
    before has ``SECTION_CHARACTERS`` characters.
    """
    sections: list[list[Span]] = [[]]
    for start, end in _paragraphs(text):
        begin = sections[-1][0][0] if sections[-1] else start
        is_heading = end - start <= _LONGEST_HEADING and _HEADING.match(text[start:end])
        if start - begin >= SECTION_CHARACTERS or (is_heading and text[begin:start].strip()):
            sections.append([])
        sections[-1].append((start, end))
    return sections if sections[0] else [[(0, 0)]]


def _paragraphs(text):
    for match in re.finditer(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text):
        start, end = match.span()
        if end - start <= 2 * SECTION_CHARACTERS:
            yield start, end
            continue
        for piece in cut_at_sentences(text[start:end], SECTION_CHARACTERS):
            yield start, start + len(piece)
            start += len(piece)


class Place(NamedTuple):
    """An entry of the table of contents: a section, a text with several sections, or several short texts."""

    anchor: str
    number: str  # printed before the label
    label: str
    counts: Counter  # of types
    parts: list  # places within


class Mention(NamedTuple):
    """All entities with one type and the same characters."""

    anchor: str
    characters: str
    count: int
    text: int  # number of the text of the first one
    first: Entity


def section_anchor(number: int, start: int) -> str:
    """The id of the section of text ``number`` that begins at a character."""
    return f"text{number}-{start}" if start else f"text{number}"


def places_of(texts: list[str], sections: list[list[list[Span]]], entities: list[list[Entity]]) -> list[Place]:
    """The table of contents of texts, given the sections (:func:`sections_of`) and the entities of each. Consecutive
    short texts share a place until they are as long as a section."""
    places: list[Place] = []
    size = 0  # characters of the texts of the last place, or 0 if it takes no more texts
    for number, (text, of_text, found) in enumerate(zip(texts, sections, entities), 1):
        counts = Counter(entity.type for entity in found)
        if len(of_text) == 1 and 0 < size < SECTION_CHARACTERS:
            first = places[-1].number.partition("–")[0]
            places[-1].counts.update(counts)
            places[-1] = places[-1]._replace(number=f"{first}–{number}")
            size += len(text) + 1
            continue
        parts = []
        for section in of_text if len(of_text) > 1 else ():
            start, end = section[0][0], section[-1][1]
            within = Counter(entity.type for entity in _beginning_in(found, start, end))
            parts.append(Place(section_anchor(number, start), f"{start:,}", _label(text[start:end]), within, []))
        places.append(Place(section_anchor(number, 0), str(number), _label(text), counts, parts))
        size = 0 if parts else len(text) + 1
    return places


def _beginning_in(ordered: list, start: int, end: int) -> list:
    """The entities or pieces, which are ordered, that begin in the half-open range from ``start`` to ``end``."""
    first, last = (bisect.bisect_left(ordered, place, key=lambda one: one.start) for place in (start, end))
    return ordered[first:last]


def _label(text):
    label = next(iter(text.strip()[: LABEL_CHARACTERS + 1].splitlines()), "")
    return label if len(label) <= LABEL_CHARACTERS else f"{label[:LABEL_CHARACTERS]}…"


def mentions_of(texts: list[str], entities: list[list[Entity]]) -> dict[str, list[Mention]]:
    """For each type, the distinct strings of its entities, by falling frequency, then by first occurrence."""
    found: dict[tuple[str, str], Mention] = {}
    for number, (text, of_text) in enumerate(zip(texts, entities), 1):
        for entity in of_text:
            key = entity.type, text[entity.start : entity.end]
            mention = found.setdefault(key, Mention(f"e{len(found) + 1}", key[1], 0, number, entity))
            found[key] = mention._replace(count=mention.count + 1)
    mentions: dict[str, list[Mention]] = {}
    for (kind, _), mention in sorted(found.items(), key=lambda item: -item[1].count):
        mentions.setdefault(kind, []).append(mention)
    return mentions


# ---- boxes

# Red, green and blue, and the most readable ink on it; vivid colors first, and neighbors far apart. Each has a contrast
# of at least 3 with the light and with the dark background. They are distinguishable in normal vision and in simulated
# protanopia, deuteranopia and tritanopia, as the tests of commit c625aa7b computed.
WHITE, BLACK = "#ffffff", "#000000"
COLORS = (
    ("0 119 204", WHITE), ("221 119 0", BLACK), ("136 17 255", WHITE), ("221 0 0", WHITE), ("51 153 238", BLACK),
    ("0 119 34", WHITE), ("221 0 170", BLACK), ("136 85 119", WHITE), ("187 136 136", BLACK), ("170 102 102", BLACK),
)  # fmt: skip
# When the colors are used up, they are repeated with the next kind of edge.
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


def nested_pieces(entities: list[Entity], cuts: Sequence[int] = ()) -> list[Piece]:
    """Cut the entities of a text into pieces, any two of which are nested or disjoint and none of which crosses one of
    the ordered ``cuts``. They are in the order in which their boxes open: outer before inner."""
    waiting = [(entity.start, -entity.end, number, True) for number, entity in enumerate(entities)]
    heapq.heapify(waiting)
    pieces: list[Piece] = []
    around: list[Piece] = []  # the pieces that are open, outer before inner
    while waiting or around:
        if around and (not waiting or around[-1].end <= waiting[0][0]):
            closed = around.pop()
            if around:
                around[-1].height = max(around[-1].height, closed.height + 1)
            continue
        start, negative_end, number, is_first = heapq.heappop(waiting)
        following = bisect.bisect_right(cuts, start)
        end = min([-negative_end, *(outer.end for outer in around[-1:]), *cuts[following : following + 1]])
        is_last = end == -negative_end
        if not is_last:
            heapq.heappush(waiting, (end, negative_end, number, False))
        pieces.append(Piece(start, end, entities[number], is_first, is_last))
        around.append(pieces[-1])
    return pieces


def drawn_paragraphs(
    text: str, entities: list[Entity], paragraphs: Sequence[Span]
) -> Iterator[tuple[int, list[str | Piece | None]]]:
    """For each paragraph of a text with its entities, which are ordered: the height of its highest box, and its parts,
    which are strings, each piece where its box opens, and None where the innermost open box closes. ``paragraphs`` has
    the span of each."""
    pieces = nested_pieces(entities, [end for _, end in paragraphs])
    for start, end in paragraphs:
        within = _beginning_in(pieces, start, end)
        height = max((piece.height for piece in within), default=0)
        yield height, list(_drawn_parts(text, start, end, within))


def _drawn_parts(text, start, end, pieces):
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
    """``color``, ``ink`` and ``edge`` of the type with this number, for the style sheet."""
    color, ink = COLORS[number % len(COLORS)]
    return {"color": color, "ink": ink, "edge": EDGES[number // len(COLORS) % len(EDGES)]}
