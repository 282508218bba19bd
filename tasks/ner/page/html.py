"""Texts with their entities as one HTML page that needs nothing else: no script, no other file.

An entity is a box around its characters with its type and probability behind them. Colors tell the types apart at a
glance; the types' names do so without color. Types can be shown alone. The page lists all entities with their counts,
and, if it has more than one section, a table of contents.

``page.html`` is the template, ``page.css`` its style. Types and probabilities are generated content of the style: they
are not in the way of searching or copying the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import jinja2
import yaml
from markupsafe import Markup, escape

from tasks.common.errors import visible
from tasks.ner.examples import Entity, entities_of
from tasks.ner.page.boxes import drawn_paragraphs
from tasks.ner.page.colors import looks_of, styles_of
from tasks.ner.page.contents import Mention, anchors_of, mentions_of, places_of, section_anchor
from tasks.ner.page.sections import Span, sections_of
from tasks.ner.spans import probability

FOLDER = Path(__file__).parent
WORDS = yaml.safe_load((FOLDER / "words.yaml").read_text(encoding="utf-8"))
ROW_CHARACTERS = 45
# Characters that a page cannot show, drawn by their symbols.
_CONTROL_SYMBOLS = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"} | {0x7F: "\u2421"}
_NOT_SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f]")  # these and CR


def write_html(
    file: TextIO,
    records: list[dict],
    types: Iterable[str],
    name: str,
    calibrated: bool = True,
    language: str = "en",
) -> None:
    """Write a page.

    Args:
        file: open for text.
        records: list of records as from :class:`tasks.ner.prediction.predictor.NerPredictor`.
        types: names of the types. Those that occur are the legend, in their order.
        name: of what the texts are from.
        calibrated: whether the model has temperatures; otherwise the page calls its probabilities scores.
        language: of the page's own words, one of :data:`tasks.ner.page.LANGUAGES`.
    """
    words = WORDS[language]
    certainty = "probability" if calibrated else "score"
    texts = [record["text"] for record in records]
    entities = [[_with_probability(entity) for entity in entities_of(record)] for record in records]
    sections = [sections_of(text) for text in texts]
    counts = Counter(entity.type for of_text in entities for entity in of_text)
    kinds = [kind for kind in types if counts[kind]]
    mentions = mentions_of(texts, entities)
    places = places_of(texts, sections, entities)
    page = {
        "language": language,
        "words": words,
        "title": visible(words["title"].format(name)),
        "summary": words["summary"].format(
            texts=_counted(words["texts"], len(texts)),
            entities=_counted(words["entities"], sum(counts[kind] for kind in kinds)),
            certainty=words[f"{certainty} of a box"],
        ),
        "certainty": words[certainty],
        "types": [
            {"name": kind, "number": number, "count": counts[kind], "mentions": mentions[kind], **looks_of(style)}
            for number, (kind, style) in enumerate(zip(kinds, styles_of(kinds, entities)))
        ],
        "number_of": {kind: number for number, kind in enumerate(kinds)},
        "contents": places if len(places) > 1 or any(place.parts for place in places) else [],
        "texts": _drawn_texts(texts, sections, entities, mentions),
    }
    file.writelines(_template().generate(page))


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["thousands"] = "{:,}".format
    return environment.get_template("page.html")


def _shown(value: Any) -> Any:
    """What the template prints for a value, before it is escaped. A browser reads CR as LF, and CR LF as one of them,
    unless CR is written as a reference."""
    if isinstance(value, Markup) or not isinstance(value, str) or not _NOT_SHOWN.search(value):
        return value
    return escape(value.translate(_CONTROL_SYMBOLS)).replace("\r", Markup("&#13;"))


def _with_probability(entity: Entity) -> Entity:
    """The entity; one from a file of before gets the probability of its score."""
    return entity if entity.probability is not None else entity._replace(probability=probability(entity.score, 1.0))


def _counted(forms: list[str], number: int) -> str:
    """A number with its noun, such as ``1 text`` or ``1,000 texts``."""
    return forms[number != 1].format(f"{number:,}")


def _drawn_texts(
    texts: list[str],
    sections: list[list[list[Span]]],
    entities: list[list[Entity]],
    mentions: dict[str, list[Mention]],
) -> Iterator[dict]:
    """The texts for the template, each drawn when its turn comes."""
    anchors = anchors_of(mentions)
    for number, (text, of_text, found) in enumerate(zip(texts, sections, entities), 1):
        paragraphs = drawn_paragraphs(text, found, [paragraph for section in of_text for paragraph in section])
        yield {
            "characters": text,
            "anchors": anchors[number],
            "sections": (
                {
                    "anchor": section_anchor(number, section[0][0]),
                    "label": f"{section[0][0]:,}" if section[0][0] else number,
                    "rows": sum(1 + (last - first) // ROW_CHARACTERS for first, last in section),
                    "paragraphs": [next(paragraphs) for _ in section],
                }
                for section in of_text
            ),
        }
