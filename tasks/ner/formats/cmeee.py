"""CMeEE: one JSON list of texts, each with a list of entities.

``[{"text": "...", "entities": [{"start_idx": 3, "end_idx": 7, "type": "pro", "entity": "房室结消融"}]}]``

The end is inclusive in CMeEE of CBLUE and exclusive in other files of this form, so ``entity`` decides for each span:
its length fits one of the two only. Written with the end included. Other keys are ignored.
Source: https://github.com/CBLUEbenchmark/CBLUE
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.json_records import Records, check_type, field, object_entities, read_records

SHAPE = 'write it as {"start_idx": first, "end_idx": last, "type": "type", "entity": "surface"}'


def read(records: Records, name: str) -> list[Example]:
    return read_records(records, ("entities",), '"entities": []', _entities)


def write(examples: Iterable[Example]) -> Iterator[str]:
    between = "[\n"
    for example in examples:
        entities = [
            {"start_idx": e.start, "end_idx": e.end - 1, "type": e.type, "entity": example.surface(e)}
            for e in example.entities
        ]
        yield between + json.dumps({"text": example.text, "entities": entities}, ensure_ascii=False)
        between = ",\n"
    yield "\n]\n"


def _entities(entities: object, text: str, where: str) -> Iterator[Entity]:
    for entity in object_entities(entities, SHAPE, where):
        type_ = check_type(field(entity, "type", SHAPE, where), SHAPE, where)
        start, end, surface = (field(entity, key, SHAPE, where) for key in ("start_idx", "end_idx", "entity"))
        if type(start) is not int or type(end) is not int or not isinstance(surface, str):
            raise InputError(f"{where}: entity {shown(entity)} has offsets or a surface of another kind; {SHAPE}")
        fits = surface and start >= 0 and text[start : start + len(surface)] == surface
        if fits and start + len(surface) in (end, end + 1):
            yield Entity(start, start + len(surface), type_)
        else:
            inclusive, exclusive = (text[max(start, 0) : max(last, 0)] for last in (end + 1, end))
            raise InputError(
                f"{where}: entity {shown(surface)} is not at [{start}, {end}] of its text of {len(text)} characters, "
                f"which holds {shown(inclusive)} with the end included and {shown(exclusive)} without; correct the "
                "offsets, which count characters from 0, or the surface"
            )
