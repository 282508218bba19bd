"""Formats of records that have a text and its entities.

* CLUENER: ``{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}``: type, surface, then pairs of first and last
  character, the end included (https://github.com/CLUEbenchmark/CLUENER2020);
* doccano, sequence labeling: ``{"text": "...", "label": [[0, 3, "name"]]}``; older releases call the key ``labels``;
* doccano, with relations: ``{"text": "...", "entities": [{"id": 1, "label": "name", "start_offset": 0,
  "end_offset": 3}], "relations": [{"id": 1, "from_id": 1, "to_id": 2, "type": "at"}]}``
  (https://doccano.github.io/doccano);
* CMeEE: one JSON list of ``{"text": "...", "entities": [{"start_idx": 3, "end_idx": 7, "type": "pro", "entity":
  "房室结消融"}]}``. The end is inclusive in CMeEE of CBLUE and exclusive in other files of this form, so ``entity``
  decides for each span: its length fits only one of the two. Written with the end included
  (https://github.com/CBLUEbenchmark/CBLUE);
* the JSON lines of ``paddle-rope predict``: ``{"text": "...", "entities": [{"start": 0, "end": 3, "type": "name",
  "text": "叶老桂", "score": 7.3}]}``. The surface ``text`` is checked if it is there; scores are not read, and
  probabilities only of a teacher. A text may be empty, because one line of input gives one record;
* spaCy's training tuples: ``[["...", {"entities": [[9, 12, "name"]]}], ...]`` (https://v2.spacy.io/api/annotation).

Offsets count characters and, except in CLUENER and CMeEE, are half-open. Other keys are ignored.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count
from typing import NamedTuple

from tasks.common.errors import InputError
from tasks.common.texts.json_records import json_line
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example, make_example
from tasks.ner.formats.records import (
    EntityIds,
    Records,
    check_kind,
    check_objects,
    check_span,
    check_type,
    field,
    reader,
    write_list,
)

# ---- CLUENER

CLUENER_SHAPE = 'write it as {"type": {"surface": [[first, last]]}}'
MOST_COMPARED = 100  # characters of all entities for each of the text: so reading takes linear time


def write_cluener(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        label: dict = {}
        for entity in example.entities:
            surfaces = label.setdefault(entity.type, {})
            surfaces.setdefault(example.surface(entity), []).append([entity.start, entity.end - 1])
        yield json_line({"text": example.text, "label": label})


def _cluener_entities(label, text, where):
    compared = 0
    for type_, surfaces in check_kind(label, dict, '"label"', CLUENER_SHAPE, where).items():
        check_type(type_, CLUENER_SHAPE, where)
        for surface, pairs in check_kind(surfaces, dict, f"label {shown(type_)}", CLUENER_SHAPE, where).items():
            named = shown(surface)
            compared += len(surface) * len(check_kind(pairs, list, f"the value of {named}", CLUENER_SHAPE, where))
            if compared > MOST_COMPARED * len(text):
                raise InputError(f"{where}: {len(pairs)} spans of {named} are more than a text has; remove some")
            for pair in pairs:
                if not (isinstance(pair, list) and len(pair) == 2):
                    raise InputError(f"{where}: span {shown(pair)} of {named} is no pair; {CLUENER_SHAPE}")
                yield Entity(*check_span(*pair, text, CLUENER_SHAPE, where, surface, inclusive=True), type_)


read_cluener = reader(("label",), _cluener_entities)

# ---- entities as lists [start, end, type]


def listed_entities(entities: object, text: str, where: str, key: str) -> Iterator[Entity]:
    """The entities of lists [start, end, type]; ``key`` is the key of the outer list."""
    shape = f'write it as "{key}": [[start, end, "type"]]'
    for span in check_kind(entities, list, f'"{key}"', shape, where):
        if not (isinstance(span, list) and len(span) == 3):
            raise InputError(f"{where}: {key} {shown(span)} is not [start, end, type]; {shape}")
        type_ = check_type(span[2], shape, where)
        yield Entity(*check_span(span[0], span[1], text, shape, where), type_)


def _as_lists(example):
    return [[entity.start, entity.end, entity.type] for entity in example.entities]


read_doccano = reader(("label", "labels"), partial(listed_entities, key="label"))


def write_doccano(examples: Iterable[Example]) -> Iterator[str]:
    return (json_line({"text": example.text, "label": _as_lists(example)}) for example in examples)


def write_spacy(examples: Iterable[Example]) -> Iterator[str]:
    return write_list([example.text, {"entities": _as_lists(example)}] for example in examples)


# ---- entities as objects


class SpanKeys(NamedTuple):
    """The keys of an entity that is an object. The end may be inclusive if the surface has to be there."""

    start: str
    end: str
    type: str
    surface: str | None = None
    surface_decides: bool = False
    probability: str | None = None


DOCCANO = SpanKeys("start_offset", "end_offset", "label")
PREDICTED = SpanKeys("start", "end", "type", "text")
PROBABLE = PREDICTED._replace(probability="probability")
CMEEE = SpanKeys("start_idx", "end_idx", "type", "entity", surface_decides=True)


def _object_entities(entities, text, where, keys):
    shape = f'write it as {{"{keys.start}": 0, "{keys.end}": 3, "{keys.type}": "type"'
    shape += f', "{keys.surface}": "surface"}}' if keys.surface_decides else "}"
    for entity in check_objects(entities, "entities", shape, where):
        start, end, type_ = (field(entity, key, shape, where) for key in keys[:3])
        check_type(type_, shape, where)
        surface = field(entity, keys.surface, shape, where) if keys.surface_decides else entity.get(keys.surface)
        if keys.surface_decides and {type(start), type(end)} == {int} and isinstance(surface, str):
            end += start + len(surface) == end + 1 and text.startswith(surface, start)
        probability = entity.get(keys.probability)
        if probability is not None and not (type(probability) in (int, float) and 0 <= probability <= 1):
            raise InputError(f"{where}: the probability {shown(probability)} is not a number from 0 to 1")
        yield Entity(*check_span(start, end, text, shape, where, surface), type_, None, probability)


def _as_objects(example, keys):
    for one in example.entities:
        surface = {keys.surface: example.surface(one)} if keys.surface else {}
        yield {keys.start: one.start, keys.end: one.end - keys.surface_decides, keys.type: one.type, **surface}


def read_doccano_entities(records: Records, name: str) -> list[Example]:
    records = list(records)
    examples = reader(("entities",), partial(_object_entities, keys=DOCCANO))(records, name)
    return [_with_relations(example, record) for example, (_, record) in zip(examples, records, strict=True)]


def _with_relations(example, record):
    if not record.get("relations"):
        return example
    ids, entities = EntityIds(), record["entities"]
    for entity, read in zip(entities, _object_entities(entities, example.text, example.where, DOCCANO), strict=True):
        ids.add(entity.get("id"), read)
    shape = 'write it as {"from_id": 1, "to_id": 2, "type": "type"}, with the "id" of two entities of the text'
    relations = []
    for relation in check_objects(record["relations"], "relations", shape, example.where):
        named = (field(relation, key, shape, example.where) for key in ("from_id", "to_id", "type"))
        relations += ids.related(*named, shape, example.where)
    return make_example(example.text, example.entities, example.where, relations)


def write_doccano_entities(examples: Iterable[Example]) -> Iterator[str]:
    numbers, relation_numbers = count(1), count(1)  # unique in a project
    for example in examples:
        entities = [
            {"id": next(numbers), "label": entity["label"], **entity} for entity in _as_objects(example, DOCCANO)
        ]
        ids = [entity["id"] for entity in entities]
        relations = [
            {"id": next(relation_numbers), "from_id": ids[head], "to_id": ids[tail], "type": type_}
            for head, tail, type_ in example.relations
        ]
        yield json_line({"text": example.text, "entities": entities, "relations": relations})


read_predictions = reader(("entities",), partial(_object_entities, keys=PREDICTED), may_be_empty=True)
# with their probabilities; an entity that has none is sure
read_probable = reader(("entities",), partial(_object_entities, keys=PROBABLE), may_be_empty=True)


def write_predictions(examples: Iterable[Example]) -> Iterator[str]:
    return (json_line({"text": one.text, "entities": [*_as_objects(one, PREDICTED)]}) for one in examples)


read_cmeee = reader(("entities",), partial(_object_entities, keys=CMEEE))


def write_cmeee(examples: Iterable[Example]) -> Iterator[str]:
    return write_list({"text": one.text, "entities": [*_as_objects(one, CMEEE)]} for one in examples)
