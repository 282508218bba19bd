"""Relations of files, which name their entities by identifiers: brat, doccano and Label Studio."""

from __future__ import annotations

from tasks.common.errors import InputError
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity
from tasks.ner.formats.records import check_type


class EntityIds:
    """The entities of a text by their identifiers, to resolve its relations."""

    def __init__(self):
        self._entities: dict[int | str, Entity | None] = {}
        self._ambiguous: set[int | str] = set()

    def add(self, id_: object, entity: Entity | None) -> None:
        """Remember an entity; None is one that was left out. If a span has several types, the first one counts."""
        if isinstance(id_, (int, str)):
            known = self._entities.get(id_)
            if known and entity and known[:2] != entity[:2]:
                self._ambiguous.add(id_)
            self._entities[id_] = known or entity

    def related(self, head: object, tail: object, type_: object, shape: str, where: str) -> list:
        """[(head entity, tail entity, type)]; an empty list if one of the entities was left out."""
        check_type(type_, shape, where)
        ends = [self._entity(id_, shape, where) for id_ in (head, tail)]
        return [] if None in ends else [(*ends, type_)]

    def _entity(self, id_, shape, where):
        if not isinstance(id_, (int, str)) or id_ not in self._entities:
            raise InputError(f"{where}: a relation names {shown(id_)}, and no entity has this identifier; {shape}")
        if id_ in self._ambiguous:
            raise InputError(f"{where}: a relation names {shown(id_)}, which several entities are called; {shape}")
        return self._entities[id_]
