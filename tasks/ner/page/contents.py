"""The way into a long page: a table of contents, and a list of the entities with links to their first mentions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tasks.ner.examples import Entity
from tasks.ner.page.boxes import escaped
from tasks.ner.page.sections import SECTION_CHARACTERS, Span

LABEL_CHARACTERS = 24


class Place(NamedTuple):
    """A place that the table of contents leads to: a section, a text of several, or texts that are short."""

    anchor: str
    number: str  # what stands before the label
    label: str
    counts: Counter  # of types
    parts: list  # places within


class Mentions(NamedTuple):
    """An entity, whose type and characters others may have, too."""

    anchor: str
    count: int


def section_anchor(number: int, start: int) -> str:
    """The id of the section of text ``number`` that begins at a character."""
    return f"text{number}-{start}" if start else f"text{number}"


def places_of(texts: list[str], sections: list[list[list[Span]]], entities: list[list[Entity]]) -> list[Place]:
    """The table of contents. Short texts that follow each other share a place, until they are as long as a section.

    Args:
        texts: the texts of the page.
        sections: of each, as from :func:`tasks.ner.page.sections.sections_of`.
        entities: of each.
    """
    places: list[Place] = []
    size = 0  # characters of the texts of the last place, if it may have more
    for number, (text, of_text, found) in enumerate(zip(texts, sections, entities), 1):
        counts = Counter(entity.type for entity in found)
        if len(of_text) > 1:
            parts = list(_parts(text, number, of_text, found))
            places.append(Place(f"text{number}", str(number), _label(text), counts, parts))
            size = 0
        elif 0 < size < SECTION_CHARACTERS:
            first = places[-1].number.partition("–")[0]
            places[-1].counts.update(counts)
            places[-1] = places[-1]._replace(number=f"{first}–{number}")
            size += len(text) + 1
        else:
            places.append(Place(f"text{number}", str(number), _label(text), counts, []))
            size = len(text) + 1
    return places


def _parts(text, number, sections, entities):
    """The sections of a text. An entity belongs to that in which it begins."""
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


def mentions_of(texts: list[str], entities: list[list[Entity]]) -> dict[str, dict[str, Mentions]]:
    """For each type the characters of its entities, the most frequent first, with what is to be said of them."""
    found: dict[str, dict[str, Mentions]] = {}
    number = 0
    for text, of_text in zip(texts, entities):
        for entity in of_text:
            of_type = found.setdefault(entity.type, {})
            characters = text[entity.start : entity.end]
            if characters in of_type:
                of_type[characters] = of_type[characters]._replace(count=of_type[characters].count + 1)
            else:
                number += 1
                of_type[characters] = Mentions(f"e{number}", 1)
    return {
        kind: dict(sorted(of_type.items(), key=lambda item: -item[1].count))  # of equals the first in the texts
        for kind, of_type in found.items()
    }


def navigation(
    places: list[Place],
    mentions: dict[str, dict[str, Mentions]],
    number_of: dict[str, int],
    words: Mapping[str, str],
) -> Iterator[str]:
    """The HTML of both.

    Args:
        places: what the table of contents leads to; without any there is none.
        mentions: of each type.
        number_of: of the types, in their order.
        words: of the page's language.
    """
    yield "<nav>\n"
    if places:
        yield f"<details open>\n<summary>{words['contents']}</summary>\n"
        yield from _list(places, number_of)
        yield "</details>\n"
    if mentions:
        yield f"<details>\n<summary>{words['list']}</summary>\n"
    for kind, number in number_of.items():
        of_type = mentions.get(kind, {})
        total = sum(mention.count for mention in of_type.values())
        counts = words["of a type"].format(total=f"{total:,}", different=f"{len(of_type):,}")
        yield f'<details class="t{number}">\n<summary><span class="name">{escaped(kind)}</span> '
        yield f"<small>{counts}</small></summary>\n<ol>\n"
        for characters, (anchor, count) in of_type.items():
            yield f'<li><a href="#{anchor}" lang="zh">{escaped(characters)}</a> <small>{count:,}</small></li>\n'
        yield "</ol>\n</details>\n"
    if mentions:
        yield "</details>\n"
    yield "</nav>\n"


def _list(places, number_of):
    yield "<ol>\n"
    for place in places:
        counts = "".join(
            f' <b class="t{number}" title="{escaped(kind)}">{place.counts[kind]:,}</b>'
            for kind, number in number_of.items()
            if place.counts[kind]
        )
        yield f'<li><a href="#{place.anchor}"><small>{place.number}</small> <span lang="zh">'
        yield f"{escaped(place.label)}</span></a>{counts}"
        if place.parts:
            yield "\n"
            yield from _list(place.parts, number_of)
        yield "</li>\n"
    yield "</ol>\n"
