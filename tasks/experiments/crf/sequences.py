"""Texts as a linear-chain CRF sees them: features and a tag for each character, and spans from tags.

The features of a character are those of Chen, Zhang and Isahara (2006), aclanthology.org/W06-0116, the characters and
pairs of characters around it, and beside them the word features that the neural models take.
"""

from __future__ import annotations

from collections.abc import Iterable

from tasks.ner.examples import Entity, Example
from tasks.ner.features import WordFeatures
from tasks.ner.formats.tagging import BMES, decode_tags, encode_tags, parse_tag

WINDOW = 2  # characters to each side
PAIRS = ((-2, -1), (-1, 0), (0, 1), (1, 2), (-1, 1))
OUTSIDE = "<>"  # beyond the text; longer than a character


def attributes(text: str, features: WordFeatures | None = None, own: Example | None = None) -> list[list[str]]:
    """For each character of a text a list of ``NAME=VALUE``: characters at -2 to 2, pairs of them, the values of the
    columns of the word ``features``, and the numbers of their flags that are set; ``own`` is as of
    :class:`~tasks.ner.features.WordFeatures`."""
    padded = [OUTSIDE] * WINDOW + list(text) + [OUTSIDE] * WINDOW
    found = []
    for place in range(WINDOW, WINDOW + len(text)):
        names = [f"{step}={padded[place + step]}" for step in range(-WINDOW, WINDOW + 1)]
        names += [f"{one},{other}={padded[place + one]}{padded[place + other]}" for one, other in PAIRS]
        found.append(names)
    if features is not None and text:
        of_text = features(text, [(place, place + 1) for place in range(len(text))], own)
        for names, columns, flags in zip(found, of_text.columns.tolist(), of_text.flags):
            names += [f"column {number}={value}" for number, value in enumerate(columns) if value]
            names += [f"flag={number}" for number in flags.nonzero()[0].tolist()]
    return found


def longest_entities(entities: Iterable[Entity]) -> list[Entity]:
    """The entities that tags can hold: of those that share a character the longest, then the first; in order."""
    kept: list[Entity] = []
    taken: set[int] = set()
    for entity in sorted(entities, key=lambda entity: (entity.start - entity.end, entity)):
        characters = range(entity.start, entity.end)
        if taken.isdisjoint(characters):
            kept.append(entity)
            taken.update(characters)
    return sorted(kept)


def tags_of(example: Example) -> list[str]:
    """The BMES tag of each character of an example, of its :func:`longest_entities`."""
    spans = [entity[:3] for entity in longest_entities(example.entities)]
    return encode_tags(len(example.text), spans, BMES)


def entities_of(tags: list[str]) -> list[Entity]:
    """The entities of the tags of a text, also of tags that are not well-formed."""
    spans, _ = decode_tags([parse_tag(tag) for tag in tags], must_close=BMES.closes)
    return [Entity(*span) for span in spans]
