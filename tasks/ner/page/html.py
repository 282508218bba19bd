"""Texts with their entities as one HTML page that needs nothing else: no script, no other file.

An entity is a box around its characters with its type and probability behind them. Colors tell the types apart at a
glance; the types' names do so without color. A page of more than one section has a table of contents and a list of all
entities beside the texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from tasks.common.visible import visible
from tasks.ner.examples import entities_of
from tasks.ner.page.boxes import drawn_paragraphs, escaped
from tasks.ner.page.contents import mentions_of, navigation, places_of, section_anchor
from tasks.ner.page.sections import sections_of

# The style sheet. A type sets --c, its color, --ink on it and --edge; a mark sets --h, the boxes stacked in it; a
# section sets --rows, about how high it is. Types and probabilities are generated content: they are not in the way of
# searching or copying the text.
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
ROW_CHARACTERS = 45
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


def write_html(file: TextIO, records: list[dict], types: Iterable[str], title: str) -> None:
    """Write a page.

    Args:
        file: open for text.
        records: list of records as from :class:`tasks.ner.prediction.predictor.NerPredictor`.
        types: names of the types. Those that occur are the legend; their order in it gives them their colors.
        title: of the page.
    """
    texts = [record["text"] for record in records]
    entities = [entities_of(record) for record in records]
    sections = [sections_of(text) for text in texts]
    counts = Counter(entity.type for of_text in entities for entity in of_text)
    counts = {kind: counts[kind] for kind in types if counts[kind]}
    number_of = {kind: number for number, kind in enumerate(counts)}
    places = places_of(texts, sections, entities)
    has_contents = len(places) > 1 or any(place.parts for place in places)
    mentions = mentions_of(texts, entities) if has_contents else {}
    long = ' class="long"' if has_contents else ""
    summary = f"{_count(len(records), 'text')}, {_count(sum(counts.values()), 'entity', 'entities')}"
    file.write(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(visible(title))}</title>\n<style>\n{STYLE}{_type_styles(len(counts))}</style>\n</head>\n"
        f"<body{long}>\n<header>\n<h1>{escaped(visible(title))}</h1>\n<p>{summary}. A box is "
        "an entity: its type, and its probability. Point at a box for its offsets and its score, a logit.</p>\n<ul>\n"
    )
    for number, (kind, count) in enumerate(counts.items()):
        file.write(f'<li class="t{number}"><span class="name">{escaped(kind)}</span> {count:,}</li>\n')
    file.write("</ul>\n</header>\n")
    if has_contents:
        file.writelines(navigation(places, mentions, number_of))
    file.write("<main>\n")
    for number, (text, of_text, found) in enumerate(zip(texts, sections, entities), 1):
        _write_text(file, number, text, of_text, found, number_of, mentions)
    file.write("</main>\n</body>\n</html>\n")


def _write_text(file, number, text, sections, entities, number_of, mentions):
    """The sections of a text; the mentions that links lead to lose their anchors, so that each has one."""

    def anchor_of(entity):
        of_type = mentions.get(entity.type, {})
        found = of_type.pop(text[entity.start : entity.end], None)
        return found and found.anchor

    paragraphs = [paragraph for section in sections for paragraph in section]
    drawn = drawn_paragraphs(text, entities, paragraphs, number_of, anchor_of)
    for section in sections:
        start = section[0][0]
        anchor = section_anchor(number, start)
        rows = sum(1 + (last - first) // ROW_CHARACTERS for first, last in section)
        style = f' style="--rows:{rows}"' if rows > 1 else ""
        label = f"{start:,}" if start else str(number)
        file.write(f'<section{style}><a id="{anchor}" href="#{anchor}">{label}</a><div>')
        file.writelines(next(drawn) for _ in section)
        file.write("</div></section>\n")


def _type_styles(count):
    lines = []
    for number in range(count):
        color, ink = COLORS[number % len(COLORS)]
        edge = EDGES[number // len(COLORS) % len(EDGES)]
        lines.append(f".t{number}{{--c:{color};--ink:{ink};--edge:{edge}}}\n")
    return "".join(lines)


def _count(number, singular, plural=None):
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
