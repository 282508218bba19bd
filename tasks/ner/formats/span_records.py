"""Formats of records that have a text and a list of its entities.

* doccano, sequence labeling: ``{"text": "...", "label": [[0, 3, "name"]]}``; older releases call the key ``labels``;
* doccano, with relations: ``{"text": "...", "entities": [{"id": 1, "label": "name", "start_offset": 0,
  "end_offset": 3}], "relations": [...]}``; the relations are skipped and counted in this module's log
  (https://doccano.github.io/doccano);
* CMeEE: one JSON list of ``{"text": "...", "entities": [{"start_idx": 3, "end_idx": 7, "type": "pro", "entity":
  "房室结消融"}]}``. The end is inclusive in CMeEE of CBLUE and exclusive in other files of this form, so ``entity``
  decides for each span: its length fits only one of the two. Written with the end included
  (https://github.com/CBLUEbenchmark/CBLUE);
* the JSON lines of ``paddle-rope predict``: ``{"text": "...", "entities": [{"start": 0, "end": 3, "type": "name",
  "text": "叶老桂", "score": 7.3}]}``. The surface ``text`` is checked if it is there; scores are neither read nor
  written. A text may be empty, because one line of input gives one record;
* spaCy's training tuples: ``[["...", {"entities": [[9, 12, "name"]]}], ...]`` (https://v2.spacy.io/api/annotation).

Offsets count characters and, except in CMeEE, are half-open. Other keys are ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from tasks.common.errors import InputError
from tasks.common.texts.json_records import json_line, json_text
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.records import Records, check_objects, check_offsets, check_type, field, read_records, write_list

logger = logging.getLogger(__name__)


# ---- entities as lists [start, end, type]


def listed_entities(entities: object, text: str, where: str, key: str) -> Iterator[Entity]:
    """The entities of lists [start, end, type]; ``key`` is that of the outer list."""
    shape = f'write it as "{key}": [[start, end, "type"]]'
    if not isinstance(entities, list):
        raise InputError(f'{where}: "{key}" is {shown(entities)}, not a list; {shape}')
    for span in entities:
        if not (isinstance(span, list) and len(span) == 3):
            raise InputError(f"{where}: {key} {shown(span)} is not [start, end, type]; {shape}")
        type_ = check_type(span[2], shape, where)
        yield Entity(*check_offsets(span[0], span[1], text, shape, where), type_)


def _as_lists(example):
    return [[entity.start, entity.end, entity.type] for entity in example.entities]


def read_doccano(records: Records, name: str) -> list[Example]:
    return read_records(records, ("label", "labels"), partial(listed_entities, key="label"))


def write_doccano(examples: Iterable[Example]) -> Iterator[str]:
    return (json_line({"text": example.text, "label": _as_lists(example)}) for example in examples)


def write_spacy(examples: Iterable[Example]) -> Iterator[str]:
    return write_list([example.text, {"entities": _as_lists(example)}] for example in examples)


# ---- entities as objects


class SpanKeys(NamedTuple):
    """The keys of an entity that is an object; offsets are half-open, the surface may be left out."""

    start: str
    end: str
    type: str
    surface: str | None = None


DOCCANO = SpanKeys("start_offset", "end_offset", "label")
PREDICTED = SpanKeys("start", "end", "type", "text")
CMEEE = SpanKeys("start_idx", "end_idx", "type", "entity")
CMEEE_SHAPE = 'write it as {"start_idx": first, "end_idx": last, "type": "type", "entity": "surface"}'


def _object_entities(entities, text, where, keys):
    shape = f'write it as {{"{keys.start}": 0, "{keys.end}": 3, "{keys.type}": "type"}}'
    for entity in check_objects(entities, "entities", shape, where):
        start, end, type_ = (field(entity, key, shape, where) for key in keys[:3])
        check_type(type_, shape, where)
        start, end = check_offsets(start, end, text, shape, where)
        if keys.surface in entity and entity[keys.surface] != text[start:end]:
            raise InputError(
                f"{where}: span [{start}, {end}] holds {shown(text[start:end])}, but the entity says "
                f"{shown(entity[keys.surface])}; correct the offsets, which count characters from 0, the end not "
                "included, or the surface"
            )
        yield Entity(start, end, type_)


def read_doccano_entities(records: Records, name: str) -> list[Example]:
    records = list(records)
    skipped = [where for where, record in records if record.get("relations")]
    examples = read_records(records, ("entities",), partial(_object_entities, keys=DOCCANO))
    if skipped:
        logger.warning("%s: skipped the doccano relations of %d texts", skipped[0], len(skipped))
    return examples


def write_doccano_entities(examples: Iterable[Example]) -> Iterator[str]:
    id_ = 0  # unique in a project
    for example in examples:
        entities = []
        for entity in example.entities:
            id_ += 1
            entities.append({"id": id_, "label": entity.type, "start_offset": entity.start, "end_offset": entity.end})
        yield json_line({"text": example.text, "entities": entities, "relations": []})


def read_predictions(records: Records, name: str) -> list[Example]:
    return read_records(records, ("entities",), partial(_object_entities, keys=PREDICTED), json_text)


def write_predictions(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        entities = [
            {"start": entity.start, "end": entity.end, "type": entity.type, "text": example.surface(entity)}
            for entity in example.entities
        ]
        yield json_line({"text": example.text, "entities": entities})


def read_cmeee(records: Records, name: str) -> list[Example]:
    return read_records(records, ("entities",), _cmeee_entities)


def _cmeee_entities(entities, text, where):
    for entity in check_objects(entities, "entities", CMEEE_SHAPE, where):
        start, end, type_, surface = (field(entity, key, CMEEE_SHAPE, where) for key in CMEEE)
        check_type(type_, CMEEE_SHAPE, where)
        if type(start) is not int or type(end) is not int or not isinstance(surface, str):
            raise InputError(f"{where}: entity {shown(entity)} has offsets or a surface of another kind; {CMEEE_SHAPE}")
        exclusive_end = start + len(surface)
        fits = surface and start >= 0 and text.startswith(surface, start) and exclusive_end in (end, end + 1)
        if not fits:
            inclusive, exclusive = (text[max(start, 0) : max(last, 0)] for last in (end + 1, end))
            raise InputError(
                f"{where}: entity {shown(surface)} is not at [{start}, {end}] of its text of {len(text)} characters, "
                f"which holds {shown(inclusive)} with the end included and {shown(exclusive)} without; correct the "
                "offsets, which count characters from 0, or the surface"
            )
        yield Entity(start, exclusive_end, type_)


def write_cmeee(examples: Iterable[Example]) -> Iterator[str]:
    return write_list(
        {
            "text": example.text,
            "entities": [
                {"start_idx": one.start, "end_idx": one.end - 1, "type": one.type, "entity": example.surface(one)}
                for one in example.entities
            ],
        }
        for example in examples
    )
