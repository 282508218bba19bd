"""Labeled documents of given lengths, made of the texts of a file, and lists of its entities."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from tasks.common.errors import InputError
from tasks.ner.examples import Entity, Example, make_example

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


def documents_of(texts: Sequence[Example], length: int) -> list[list[int]]:
    """The indices of the texts of each document of at most ``length`` characters; a longer text is one alone."""
    groups = group_neighbors(texts, lambda first: length)
    ends = [sum(map(len, groups[:number])) for number in range(len(groups) + 1)]
    return [list(range(begin, end)) for begin, end in zip(ends, ends[1:])]


def join(examples: Sequence[Example]) -> Example:
    """Texts one after the other, as sentences stand in a document, with their entities; ``where`` names the first.

    Nothing stands between them, but a space where an ASCII letter or digit stands on either side: two words or numbers
    would become one there.
    """
    parts: list[str] = []
    entities: list[Entity] = []
    start = 0
    for example in examples:
        space = _space_between(parts[-1] if parts else "", example.text)
        start += len(space)
        entities += [entity._replace(start=entity.start + start, end=entity.end + start) for entity in example.entities]
        parts += [space, example.text]
        start += len(example.text)
    return make_example("".join(parts), entities, examples[0].where)


def group_neighbors(examples: Sequence[Example], length_of) -> list[list[Example]]:
    """Cut a list of examples into stretches of neighbors.

    Args:
        examples: in the order of their file.
        length_of: function of the first example of a stretch: the characters that the stretch has at most when it is
            joined. The first is in it, whatever its length.
    """
    groups: list[list[Example]] = []
    left = 0
    for example in examples:
        needed = len(example.text) + len(_space_between(groups[-1][-1].text if groups else "", example.text))
        if groups and needed <= left:
            groups[-1].append(example)
            left -= needed
        else:
            groups.append([example])
            left = length_of(example) - len(example.text)
    return groups


def _space_between(before: str, after: str) -> str:
    ends = before[-1:] + after[:1]
    return " " if len(ends) == 2 and ends.isascii() and ends.isalnum() else ""


def join_found(texts: Sequence[Example], found: Sequence[list], documents: Sequence[list[int]]) -> list[Example]:
    """Documents of the texts with other entities: those ``found`` in each."""
    return [join([make_example(texts[i].text, found[i], texts[i].where) for i in of_one]) for of_one in documents]


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
    comma = Example(SEPARATOR, (), "")
    draw = random.Random(seed)
    documents: list[Example] = []
    done = 0
    parts: list[Example] = []
    while mentions and done < characters:
        mention = draw.choice(mentions)
        if parts and sum(len(part.text) for part in parts) + len(SEPARATOR) + len(mention.text) > length:
            documents.append(join(parts))
            done += len(documents[-1].text)
            parts = []
        parts += [comma, mention] if parts else [mention]
    return documents


def _part(example, start, end):
    inside = [
        entity._replace(start=entity.start - start, end=entity.end - start)
        for entity in example.entities
        if start <= entity.start and entity.end <= end
    ]
    return make_example(example.text[start:end], inside, example.where)
