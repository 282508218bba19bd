"""Labeled documents of given lengths, made of the texts of a file, and lists of its entities."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from tasks.common.errors import InputError
from tasks.ner.examples import Example, make_example

SEPARATOR = "、"  # between the entities of a list


def first_texts(examples: Sequence[Example], characters: int) -> list[Example]:
    """The first texts of a file that have so many characters together, or all; empty ones are left out."""
    chosen: list[Example] = []
    count = 0
    for example in examples:
        if count >= characters:
            break
        if example.text:
            chosen.append(example)
            count += len(example.text)
    return chosen


def group_neighbors(texts: Sequence[Example], length: int) -> list[list[int]]:
    """The indices of the texts of each document of at most ``length`` characters; a longer text is one alone."""
    groups: list[list[int]] = []
    left = 0
    for number, text in enumerate(texts):
        needed = len(text.text) + len(_space_between(texts[number - 1].text if groups else "", text.text))
        if groups and needed <= left:
            groups[-1].append(number)
            left -= needed
        else:
            groups.append([number])
            left = length - len(text.text)
    return groups


def join(examples: Sequence[Example]) -> Example:
    """Texts one after the other, as sentences stand in a document, with their entities; ``where`` names the first.

    Nothing stands between them, but a space where an ASCII letter or digit stands on either side: two words or numbers
    would become one there.
    """
    text, entities = "", []
    for example in examples:
        text += _space_between(text, example.text)
        entities += [_moved(entity, len(text)) for entity in example.entities]
        text += example.text
    return make_example(text, entities, examples[0].where)


def _space_between(before: str, after: str) -> str:
    ends = before[-1:] + after[:1]
    return " " if len(ends) == 2 and ends.isascii() and ends.isalnum() else ""


def _moved(entity, characters):
    return entity._replace(start=entity.start + characters, end=entity.end + characters)


def join_found(texts: Sequence[Example], found: Sequence[list], groups: Sequence[list[int]]) -> list[Example]:
    """Documents of the texts with other entities: those ``found`` in each."""
    return [join([make_example(texts[i].text, found[i], texts[i].where) for i in group]) for group in groups]


def most_frequent_type(examples: Sequence[Example]) -> str:
    """The type with the most entities; raises InputError if there is no entity."""
    counts = Counter(entity.type for example in examples for entity in example.entities)
    if not counts:
        raise InputError(f"{examples[0].where}: no entity is labeled in the texts that are measured; give other data")
    return min(counts, key=lambda kind: (-counts[kind], kind))


def list_documents(examples: Sequence[Example], kind: str, length: int, characters: int, seed: int) -> list[Example]:
    """Documents of nothing but entities of a type, drawn from all its mentions, with ``、`` between them.

    Args:
        examples: with entities of this type. What is labeled inside of an entity is in the document, too.
        kind: the type.
        length: of each document, in characters at most; a single entity may be longer.
        characters: of all documents together, at least.
        seed: of the choice; documents of another length begin with the same entities.
    """
    mentions = [
        _part(example, entity.start, entity.end)
        for example in examples
        for entity in example.entities
        if entity.type == kind and SEPARATOR not in example.surface(entity)
    ]
    draw, separator = random.Random(seed), Example(SEPARATOR, (), "")
    documents: list[Example] = []
    parts: list[Example] = []
    while mentions and sum(len(document.text) for document in documents) < characters:
        mention = draw.choice(mentions)
        if parts and sum(len(part.text) for part in (*parts, separator, mention)) > length:
            documents.append(join(parts))
            parts = []
        parts += [separator, mention] if parts else [mention]
    return documents


def _part(example, start, end):
    inside = [_moved(entity, -start) for entity in example.entities if start <= entity.start and entity.end <= end]
    return make_example(example.text[start:end], inside, example.where)
