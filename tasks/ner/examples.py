"""Texts with entities in memory, as characters and as tokens. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.text_files import shown

MOST_NESTED = 100  # characters in all entities of a text per character of the text; keeps the work linear


class Entity(NamedTuple):
    """A typed span of characters, ``text[start:end]``."""

    start: int
    end: int
    type: str
    score: float = None  # type: ignore[assignment]  # logit of a predicted one
    probability: float = None  # type: ignore[assignment]  # that it is right

    def surface(self, text: str, most: int | None = None) -> str:
        """Its characters in a text, at most so many of them."""
        return text[self.start : self.end if most is None else min(self.end, self.start + most)]


Found = list[list[Entity]]  # the entities that a model finds, or could find, in each text


class Relation(NamedTuple):
    """A typed relation between two entities of an example."""

    head: int  # index in its entities
    tail: int
    type: str


@dataclass(frozen=True)
class Example:
    """A labeled text. The entities are sorted and distinct; they may be nested or overlap."""

    text: str
    entities: tuple[Entity, ...]
    where: str  # "path:line" of the first line, for error messages
    relations: tuple[Relation, ...] = ()

    @property
    def spans(self) -> frozenset[tuple[int, int, str]]:
        """The (start, end, type) of the entities."""
        return spans_of(self.entities)

    def surface(self, entity: Entity) -> str:
        """The characters of an entity."""
        return entity.surface(self.text)

    def described(self, *entities: Entity) -> str:
        """Type, characters and offsets of one or two entities, for messages."""
        starts = [e.surface(self.text, 41) for e in entities]  # an entity may be very long
        told = [f"{e.type} {shown(start, 40)} [{e.start}, {e.end}]" for e, start in zip(entities, starts)]
        return told[0] if len(told) == 1 else f"{told[0]} and {told[1]}"


def make_example(
    text: str, entities: Iterable[Entity], where: str, relations: Iterable[tuple[Entity, Entity, str]] = ()
) -> Example:
    """An example with its entities and relations sorted and distinct; relations are given as (head, tail, type). Raises
    InputError if the entities have more than ``MOST_NESTED`` times the characters of the text."""
    entities = sorted(set(_bounded(entities, text, where)))
    number = {entity: index for index, entity in enumerate(entities)}
    related = sorted({Relation(number[head], number[tail], kind) for head, tail, kind in relations})
    return Example(text, tuple(entities), where, tuple(related))


def _bounded(entities, text, where):
    characters = 0
    for entity in entities:
        characters += entity.end - entity.start
        if characters > MOST_NESTED * len(text):
            found = f"entities of more than {MOST_NESTED} times the characters of the text"
            raise InputError(f"{where}: {found}; remove repeated and nested ones")
        yield entity


def entity_types(*example_lists: Iterable[Example]) -> list[str]:
    """The sorted distinct entity types of lists of examples."""
    return sorted({entity.type for examples in example_lists for example in examples for entity in example.entities})


def relation_types(examples: Iterable[Example]) -> list[str]:
    """The sorted distinct types of the relations of examples."""
    return sorted({relation.type for example in examples for relation in example.relations})


def first_overlap(entities: Iterable[Entity]) -> tuple[Entity, Entity] | None:
    """Two neighbors of sorted entities that have a character in common; None if no entities of a text overlap."""
    return next(((one, other) for one, other in pairwise(entities) if other.start < one.end), None)


def spans_of(entities: Iterable[Entity]) -> frozenset[tuple[int, int, str]]:
    """The (start, end, type) of entities, without scores."""
    return frozenset(entity[:3] for entity in entities)


def without_overlaps(entities: Iterable[Entity], rank: Any = lambda entity: -entity.score) -> list[Entity]:
    """The entities without overlaps, in order. Of overlapping ones, the one with the lowest rank is kept, by default
    the one with the highest score."""
    kept: list[Entity] = []
    taken: set[int] = set()
    for entity in sorted(entities, key=lambda entity: (rank(entity), entity)):
        characters = range(entity.start, entity.end)
        if taken.isdisjoint(characters):
            kept.append(entity)
            taken.update(characters)
    return sorted(kept)


class TokenizedText(NamedTuple):
    """A text as tokens between two special tokens. ``spans`` are its entities as (type number, first token, last token,
    probability); token 0 is the first special token. ``pairs`` are its relations as (type number, first and last token
    of the head, first and last token of the tail)."""

    ids: list
    offsets: list  # half-open characters of each token; (0, 0) for special tokens
    spans: list
    features: Any = None  # TokenFeatures, for models that take them
    pairs: Sequence = ()

    @property
    def size(self) -> int:
        """Number of tokens, without the special ones."""
        return len(self.ids) - 2

    def part(self, begin: int, end: int) -> TokenizedText:
        """The tokens ``begin:end``, counted without the special ones, between special tokens; without labels."""
        rows = [0, *range(begin + 1, end + 1), -1]
        ids, offsets = ([column[row] for row in rows] for column in (self.ids, self.offsets))
        return TokenizedText(ids, offsets, [], self.features and self.features.of_tokens(rows))

    def joined(self, following: TokenizedText) -> TokenizedText:
        """The tokens of this text and of the following one, between special tokens; without labels."""
        features = self.features and self.features.joined(following.features)
        return TokenizedText(self.ids[:-1] + following.ids[1:], self.offsets[:-1] + following.offsets[1:], [], features)


def align_entities(
    entities: Iterable[Entity], offsets: list[tuple[int, int]]
) -> tuple[list[tuple[Entity, int, int]], list[Entity]]:
    """(aligned, unaligned): tuples (entity, first token, last token), and the entities whose start or end is inside a
    token, or in characters without a token. ``offsets`` are the half-open characters of each token."""
    first_token = {start: index for index, (start, end) in enumerate(offsets) if end > start}
    last_token = {end: index for index, (start, end) in enumerate(offsets) if end > start}
    aligned, unaligned = [], []
    for entity in entities:
        first, last = first_token.get(entity.start), last_token.get(entity.end)
        if first is None or last is None:
            unaligned.append(entity)
        else:
            aligned.append((entity, first, last))
    return aligned, unaligned


def as_record(text: str, entities: Iterable[Entity]) -> dict:
    """A prediction as a dict, as it is written to files: see ``NerPredictor``."""
    found = [
        {"start": start, "end": end, "type": kind, "text": text[start:end]}
        | {"score": None if score == inf else round(score, 4), "probability": round(probability, 4)}
        for start, end, kind, score, probability in entities
    ]
    return {"text": text, "entities": found}


def entities_of(record: dict) -> list[Entity]:
    """The entities of a record made by :func:`as_record`."""
    entities = (Entity(*(entity.get(name) for name in Entity._fields)) for entity in record["entities"])
    return [entity._replace(score=inf) if entity.score is None else entity for entity in entities]
