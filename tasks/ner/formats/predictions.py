"""The JSON lines that ``paddle-rope predict`` writes.

``{"text": "...", "entities": [{"start": 0, "end": 3, "type": "name", "text": "叶老桂", "score": 7.3}]}``: offsets in
characters, half-open. The surface ``text`` is checked if it is there, the score is neither read nor written.
A text may be empty, as one line of input gives one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import json_line, json_text
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.json_records import Records, check_offsets, check_type, field, object_entities, read_records

SHAPE = 'write it as {"start": 0, "end": 3, "type": "type"}'


def read(records: Records, name: str) -> list[Example]:
    return read_records(records, ("entities",), '"entities": []', _entities, json_text)


def _entities(entities: object, text: str, where: str) -> Iterator[Entity]:
    for entity in object_entities(entities, SHAPE, where):
        type_ = check_type(field(entity, "type", SHAPE, where), SHAPE, where)
        start, end = (field(entity, key, SHAPE, where) for key in ("start", "end"))
        start, end = check_offsets(start, end, text, SHAPE, where)
        if "text" in entity and entity["text"] != text[start:end]:
            raise InputError(
                f"{where}: span [{start}, {end}] holds {shown(text[start:end])}, but the entity says "
                f"{shown(entity['text'])}; correct the offsets, which count characters from 0, the end not included, "
                "or the surface"
            )
        yield Entity(start, end, type_)


def write(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        entities = [
            {"start": entity.start, "end": entity.end, "type": entity.type, "text": example.surface(entity)}
            for entity in example.entities
        ]
        yield json_line({"text": example.text, "entities": entities})
