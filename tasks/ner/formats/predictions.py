"""The JSON lines that ``tools/predict_ner.py`` writes.

``{"text": "...", "entities": [{"start": 0, "end": 3, "type": "name", "text": "叶老桂", "score": 7.3}]}``: offsets in
characters, half-open. The surface ``text`` is checked if it is there, the score is not read (and not written: an
``Entity`` has none). A text may be empty, as one line of input gives one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_lines import json_line, json_records, json_text
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example, make_example
from tasks.ner.formats.json_records import check_offsets, check_type, field, labels, object_entities

SHAPE = 'write it as {"start": 0, "end": 3, "type": "type"}'


def read(lines: list[str], name: str) -> list[Example]:
    examples = []
    for where, record in json_records(lines, name):
        text = json_text(record, where)
        entities = labels(record, ("entities",), '"entities": []', where)
        examples.append(make_example(text, _entities(entities, text, where), where))
    return examples


def _entities(entities: object, text: str, where: str) -> Iterator[Entity]:
    for entity in object_entities(entities, SHAPE, where):
        type_ = check_type(field(entity, "type", SHAPE, where), SHAPE, where)
        start, end = (field(entity, key, SHAPE, where) for key in ("start", "end"))
        start, end = check_offsets(start, end, text, SHAPE, where)
        if entity.get("text", text[start:end]) != text[start:end]:
            raise InputError(
                f"{where}: span [{start}, {end}] holds {shown(text[start:end])}, but the entity says "
                f"{shown(entity['text'])}; correct the offsets, which count characters from 0, the end not included, "
                "or the surface"
            )
        yield Entity(start, end, type_)


def write(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        entities = []
        for entity in example.entities:
            surface = example.text[entity.start : entity.end]
            entities.append({"start": entity.start, "end": entity.end, "type": entity.type, "text": surface})
        yield json_line({"text": example.text, "entities": entities})
