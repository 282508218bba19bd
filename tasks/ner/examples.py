"""Labelled texts in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Entity:
    """A typed span of characters: ``text[start:end]``."""

    start: int
    end: int
    type: str


@dataclass(frozen=True)
class Example:
    """A labelled text. The entities are sorted and distinct; they may be nested or overlap."""

    text: str
    entities: tuple[Entity, ...]
    where: str  # "path:line" of the first line, for error messages


def make_example(text: str, entities: Iterable[Entity], where: str) -> Example:
    """An example with its entities sorted and distinct."""
    return Example(text, tuple(sorted(set(entities))), where)


def entity_types(*example_lists: Iterable[Example]) -> list[str]:
    """The sorted distinct entity types of lists of examples."""
    return sorted({entity.type for examples in example_lists for example in examples for entity in example.entities})
