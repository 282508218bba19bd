"""doccano: JSON lines of its two exports, offsets in characters, half-open.

* sequence labeling: ``{"text": "...", "label": [[0, 3, "name"]]}``; older releases call the key ``labels``;
* with relations: ``{"text": "...", "entities": [{"id": 1, "label": "name", "start_offset": 0, "end_offset": 3}],
  "relations": [...]}``; the relations are skipped, and counted in one line of this module's log.

Other keys (``id``, ``Comments``, ...) are ignored. Source: https://doccano.github.io/doccano
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import json_line
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.json_records import Records, check_offsets, check_type, field, object_entities, read_records

logger = logging.getLogger(__name__)

LABEL_SHAPE = 'write it as "label": [[start, end, "type"]]'
ENTITY_SHAPE = 'write it as {"start_offset": 0, "end_offset": 3, "label": "type"}'


def read(records: Records, name: str) -> list[Example]:
    """The sequence labeling export."""
    return read_records(records, ("label", "labels"), '"label": []', _label_entities)


def _label_entities(label: object, text: str, where: str) -> Iterator[Entity]:
    if not isinstance(label, list):
        raise InputError(f'{where}: "label" is {shown(label)}, not a list; {LABEL_SHAPE}')
    for span in label:
        if not (isinstance(span, list) and len(span) == 3):
            raise InputError(f"{where}: label {shown(span)} is not [start, end, type]; {LABEL_SHAPE}")
        type_ = check_type(span[2], LABEL_SHAPE, where)
        yield Entity(*check_offsets(span[0], span[1], text, LABEL_SHAPE, where), type_)


def write(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        label = [[entity.start, entity.end, entity.type] for entity in example.entities]
        yield json_line({"text": example.text, "label": label})


def read_entities(records: Records, name: str) -> list[Example]:
    """The export with relations."""
    skipped = []

    def counted():
        for where, record in records:
            if record.get("relations"):
                skipped.append(where)
            yield where, record

    examples = read_records(counted(), ("entities",), '"entities": []', _object_entities)
    if skipped:
        logger.warning("%s: skipped the doccano relations of %d texts", skipped[0], len(skipped))
    return examples


def _object_entities(entities: object, text: str, where: str) -> Iterator[Entity]:
    for entity in object_entities(entities, ENTITY_SHAPE, where):
        start, end, type_ = (field(entity, key, ENTITY_SHAPE, where) for key in ("start_offset", "end_offset", "label"))
        check_type(type_, ENTITY_SHAPE, where)
        yield Entity(*check_offsets(start, end, text, ENTITY_SHAPE, where), type_)


def write_entities(examples: Iterable[Example]) -> Iterator[str]:
    number = 0  # ids are unique in a project
    for example in examples:
        entities = [
            {"id": id_, "label": entity.type, "start_offset": entity.start, "end_offset": entity.end}
            for id_, entity in enumerate(example.entities, number + 1)
        ]
        number += len(entities)
        yield json_line({"text": example.text, "entities": entities, "relations": []})
