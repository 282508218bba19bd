"""Texts with their entities as a self-contained HTML page, without scripts or other files.

An entity is a box around its characters with its type and probability after them. Colors tell the types apart at a
glance; the types' names do so without color. Types can be shown alone. The page lists all entities with their counts,
and, if it has more than one section, a table of contents.

A record of a relation model also has arcs between the boxes of related entities, in pictures below a paragraph.

``page.html`` is the template, ``page.css`` its style. Types and probabilities are generated content of the style, so
they do not get in the way of searching or copying the text.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

import jinja2
import yaml
from markupsafe import Markup, escape

from paddle_rope.tasks.common.errors import visible
from paddle_rope.tasks.ner.examples import entities_of
from paddle_rope.tasks.ner.page.arcs import arcs
from paddle_rope.tasks.ner.page.layout import (
    Piece,
    drawn_paragraphs,
    look_of,
    mentions_of,
    places_of,
    section_anchor,
    sections_of,
)

FOLDER = Path(__file__).parent
WORDS = yaml.safe_load((FOLDER / "words.yaml").read_text(encoding="utf-8"))
ENVIRONMENT = jinja2.Environment(
    trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=True,
    undefined=jinja2.StrictUndefined, loader=jinja2.FileSystemLoader(FOLDER),
)  # fmt: skip
ENVIRONMENT.filters["thousands"] = "{:,}".format
ROW_CHARACTERS = 45
TITLE_CHARACTERS = 200  # of an entity, in what each piece of it shows under the pointer
# Symbols for characters that a page cannot show. A browser reads CR as LF, and CR LF as a single LF, unless CR is
# written as a character reference.
_SYMBOLS = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421", "\r": "&#13;"}
_NOT_SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def write_html(
    file: TextIO, records: list[dict], types: Iterable[str], name: str, calibrated: bool = True, language: str = "en"
) -> None:
    """Write a page of records (``NerPredictor``) into an open file. Its legend has the types that occur, in the order
    of ``types``, then others, which a dictionary forces; ``name`` says where the texts are from. A model without
    temperatures is not ``calibrated``, and the page calls its probabilities scores. ``language`` is the language of the
    page's labels."""
    words = WORDS[language]
    certainty = "probability" if calibrated else "score"
    texts = [record["text"] for record in records]
    entities = [entities_of(record) for record in records]
    sections = [sections_of(text) for text in texts]
    counts = Counter(entity.type for of_text in entities for entity in of_text)
    kinds = [kind for kind in dict.fromkeys((*types, *sorted(counts))) if counts[kind]]
    mentions = mentions_of(texts, entities)
    places = places_of(texts, sections, entities)
    number_of = {kind: number for number, kind in enumerate(kinds)}
    anchors = {(mention.text, mention.first): mention.anchor for of_type in mentions.values() for mention in of_type}

    def mark(piece: Piece, number: int) -> str:
        """The tag that opens the box of a piece. Making it in the template would take three times as long."""
        entity, text = piece.entity, texts[number - 1]
        kind = escape(entity.type)
        surface = escape(text[entity.start : min(entity.end, entity.start + TITLE_CHARACTERS)])
        classes = f"t{number_of[entity.type]}"
        classes += " goes-on-left" * (not piece.is_first) + " goes-on-right" * (not piece.is_last)
        is_linked = piece.is_first and (number, entity) in anchors
        anchor = f' id="{anchors[number, entity]}"' if is_linked else ""
        offsets = words["offsets"].format(start=entity.start, end=entity.end)
        return (
            f'<mark class="{classes}"{anchor} style="--h:{piece.height}" data-type="{kind}" '
            f'data-certainty="{entity.probability:.2f}" '
            f'title="{kind}: {surface}\n{offsets}\n{words[certainty]} {entity.probability:.3f}">'
        )

    def drawn(number: int) -> Iterator[dict]:
        """The sections of a text for the template."""
        text, of_text = texts[number - 1], sections[number - 1]

        def html(part: str | Piece | None) -> str:
            return escape(part) if isinstance(part, str) else mark(part, number) if part else "</mark>"

        paragraphs = drawn_paragraphs(text, entities[number - 1], [span for section in of_text for span in section])
        relations = records[number - 1].get("relations", ())
        pictures = deque(arcs(text, entities[number - 1], relations, number_of.__getitem__))

        def with_arcs(height: int, parts: list, end: int) -> tuple[int, Markup, Markup]:
            """A paragraph up to the character ``end``, with the arcs that begin in it."""
            begun = []
            while pictures and pictures[0][0] < end:
                begun.append(pictures.popleft()[1])
            return height, Markup("".join(map(html, parts))), Markup("".join(begun))

        for section in of_text:
            of_section = [(*next(paragraphs), end) for _, end in section]
            yield {
                "anchor": section_anchor(number, section[0][0]),
                "label": f"{section[0][0]:,}" if section[0][0] else number,
                "rows": sum(1 + (last - first) // ROW_CHARACTERS for first, last in section),
                "paragraphs": [with_arcs(*paragraph) for paragraph in of_section],
            }

    number = counts.total()
    page = {
        "language": language,
        "words": words,
        "title": visible(words["title"].format(name)),
        "summary": words["summary"].format(
            texts=words["texts"][len(texts) != 1].format(f"{len(texts):,}"),  # "1 text", "1,000 texts"
            entities=words["entities"][number != 1].format(f"{number:,}"),
            certainty=words[f"{certainty} of a box"],
        ),
        "types": [
            {"name": kind, "number": number, "count": counts[kind], "mentions": mentions[kind], **look_of(number)}
            for number, kind in enumerate(kinds)
        ],
        "contents": places if len(places) > 1 or any(place.parts for place in places) else [],
        "texts": map(drawn, range(1, len(texts) + 1)),
    }
    chunks = ENVIRONMENT.get_template("page.html").generate(page)
    file.writelines(_NOT_SHOWN.sub(lambda found: _SYMBOLS[found[0]], chunk) for chunk in chunks)
