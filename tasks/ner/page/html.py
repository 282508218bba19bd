"""Texts with their entities as one HTML page that needs nothing else: no script, no other file.

An entity is a box around its characters with its type and probability behind them. Colors tell the types apart at a
glance; the types' names do so without color. Types can be shown alone. Beside the texts stand all entities with their
counts, and of more than one section a table of contents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from tasks.common.errors import visible
from tasks.ner.examples import entities_of
from tasks.ner.page.boxes import drawn_paragraphs, escaped
from tasks.ner.page.colors import styles_of, type_styles
from tasks.ner.page.contents import mentions_of, navigation, places_of, section_anchor
from tasks.ner.page.sections import sections_of
from tasks.ner.page.words import WORDS, counted

# The style sheet. A type sets --c, its color, --ink on it and --edge; a mark sets --h, the boxes stacked in it; a
# section sets --rows, about how high it is. Types and probabilities are generated content: they are not in the way of
# searching or copying the text.
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
ROW_CHARACTERS = 45
# What a browser may do with the page: nothing but apply the styles that stand in it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"


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
        calibrated: whether the model has temperatures, so that its probabilities are some, and not only scores.
        language: of the page's own words, one of :data:`tasks.ner.page.words.LANGUAGES`.
    """
    words = WORDS[language]
    texts = [record["text"] for record in records]
    entities = [entities_of(record) for record in records]
    sections = [sections_of(text) for text in texts]
    counts = Counter(entity.type for of_text in entities for entity in of_text)
    counts = {kind: counts[kind] for kind in types if counts[kind]}
    number_of = {kind: number for number, kind in enumerate(counts)}
    styles = "".join(type_styles(styles_of(list(counts), entities)))
    places = places_of(texts, sections, entities)
    has_contents = len(places) > 1 or any(place.parts for place in places)
    mentions = mentions_of(texts, entities)
    title = escaped(visible(words["title"].format(name)))
    summary = _summary(words, len(records), sum(counts.values()), calibrated)
    long = ' class="long"' if has_contents else ""
    file.write(
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}{styles}</style>\n</head>\n"
        f"<body{long}>\n<header>\n<h1>{title}</h1>\n<p>{summary}</p>\n"
    )
    file.writelines(_filter(words, counts))
    file.write("</header>\n")
    if has_contents or mentions:
        file.writelines(navigation(places if has_contents else [], mentions, number_of, words))
    file.write("<main>\n")
    for number, (text, of_text, found) in enumerate(zip(texts, sections, entities), 1):
        _write_text(file, number, text, of_text, found, number_of, mentions, words, calibrated)
    file.write("</main>\n</body>\n</html>\n")


def _summary(words, texts, entities, calibrated):
    return words["summary"].format(
        texts=counted(words, texts, "one text", "texts"),
        entities=counted(words, entities, "one entity", "entities"),
        certainty=words["probability of a box" if calibrated else "score of a box"],
    )


def _filter(words, counts):
    """The legend, whose types can be chosen. The browser's reset of the form chooses none, which shows all."""
    if not counts:
        return
    yield f'<form autocomplete="off">\n<span class="hint">{words["only"]}</span>\n<ul>\n'
    for number, (kind, count) in enumerate(counts.items()):
        yield f'<li class="t{number}"><label><input type="checkbox" class="only" id="only{number}">'
        yield f'<span class="name">{escaped(kind)}</span> {count:,}</label></li>\n'
    yield f'</ul>\n<button type="reset">{words["all"]}</button>\n</form>\n'


def _write_text(file, number, text, sections, entities, number_of, mentions, words, calibrated):
    """The sections of a text; the mentions that links lead to lose their anchors, so that each has one."""

    def anchor_of(entity):
        of_type = mentions.get(entity.type, {})
        found = of_type.pop(text[entity.start : entity.end], None)
        return found and found.anchor

    paragraphs = [paragraph for section in sections for paragraph in section]
    drawn = drawn_paragraphs(text, entities, paragraphs, number_of, anchor_of, words, calibrated)
    for section in sections:
        start = section[0][0]
        anchor = section_anchor(number, start)
        rows = sum(1 + (last - first) // ROW_CHARACTERS for first, last in section)
        style = f' style="--rows:{rows}"' if rows > 1 else ""
        label = f"{start:,}" if start else str(number)
        file.write(f'<section{style}><a id="{anchor}" href="#{anchor}">{label}</a><div>')
        file.writelines(next(drawn) for _ in section)
        file.write("</div></section>\n")
