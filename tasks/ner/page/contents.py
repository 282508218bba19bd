"""The way into a long page: sections of texts and their paragraphs, a table of contents, and a list of the entities
with links to their first mentions."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tasks.common.texts.documents import cut_at_sentences
from tasks.ner.examples import Entity

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

    A paragraph is a line with its end. One of more than twice ``SECTION_CHARACTERS`` is cut at ends of sentences, or,
    where there are none, after so many characters. A section begins with a heading, or with the first paragraph when
    the one before has ``SECTION_CHARACTERS``.
    """
    sections: list[list[Span]] = [[]]
    for start, end in _paragraphs(text):
        section = sections[-1]
        is_full = bool(section) and start - section[0][0] >= SECTION_CHARACTERS
        if section and (is_full or (is_heading(text[start:end]) and text[section[0][0] : start].strip())):
            sections.append([])
        sections[-1].append((start, end))
    return sections if sections[0] else [[(0, 0)]]


def is_heading(line: str) -> bool:
    """Whether a line of a text is a heading."""
    return len(line) <= _LONGEST_HEADING and _HEADING.match(line) is not None


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
    """A place that the table of contents leads to: a section, a text of several, or texts that are short."""

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
    """The table of contents, of texts with the sections of each (:func:`sections_of`) and its
    entities. Short texts that follow each other share a place, until they are as long as a section."""
    places: list[Place] = []
    size = 0  # characters of the texts of the last place, if it may have more
    for number, (text, of_text, found) in enumerate(zip(texts, sections, entities), 1):
        counts = Counter(entity.type for entity in found)
        if len(of_text) == 1 and 0 < size < SECTION_CHARACTERS:
            first = places[-1].number.partition("–")[0]
            places[-1].counts.update(counts)
            places[-1] = places[-1]._replace(number=f"{first}–{number}")
            size += len(text) + 1
            continue
        parts = list(_parts(text, number, of_text, found)) if len(of_text) > 1 else []
        places.append(Place(section_anchor(number, 0), str(number), _label(text), counts, parts))
        size = 0 if parts else len(text) + 1
    return places


def _parts(text: str, number: int, sections: list[list[Span]], entities: list[Entity]) -> Iterator[Place]:
    """The sections of a text. An entity belongs to the section in which it begins."""
    place = 0
    for section in sections:
        start, end = section[0][0], section[-1][1]
        counts: Counter = Counter()
        while place < len(entities) and entities[place].start < end:
            counts[entities[place].type] += 1
            place += 1
        yield Place(section_anchor(number, start), f"{start:,}", _label(text[start:end]), counts, [])


def _label(text):
    line = text.strip()[: LABEL_CHARACTERS + 1].splitlines()[:1]
    label = line[0] if line else ""
    return label if len(label) <= LABEL_CHARACTERS else f"{label[:LABEL_CHARACTERS]}…"


def mentions_of(texts: list[str], entities: list[list[Entity]]) -> dict[str, list[Mention]]:
    """For each type the distinct characters of its entities, the most frequent first, of equals the first one."""
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
