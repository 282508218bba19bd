"""What the JSON formats share: checks of texts, types and spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import check_encodable, json_text
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example, make_example

Records = Iterable[tuple[str, dict]]  # pairs ("path:line", record), of JSON lines, a JSON list or a table


def labeled_text(record: dict, where: str) -> str:
    """The text of a labeled record; it must not be empty."""
    text = json_text(record, where)
    if not text:
        raise InputError(f'{where}: "text" is empty; remove the line or give it a text')
    return text


def read_records(
    records: Records,
    keys: tuple[str, ...],
    without: str,
    entities: Callable[[object, str, str], Iterable[Entity]],
    text_of: Callable[[dict, str], str] = labeled_text,
) -> list[Example]:
    """The examples of JSON records.

    Args:
        records: pairs ("path:line", record).
        keys: the entities are under the first of these that a record has.
        without: how a text without entities is written, for messages.
        entities: gives the entities from what is under the key, the text and the place.
        text_of: gives the text of a record.
    """
    examples = []
    for where, record in records:
        text = text_of(record, where)
        found = _labels(record, keys, without, where)
        examples.append(make_example(text, entities(found, text, where), where))
    return examples


def _labels(record, keys, without, where):
    for key in keys:
        if key in record:
            return record[key]
    raise InputError(
        f'{where}: no "{keys[0]}", the file is unlabeled; give labeled data (a text without entities has {without}) '
        "or use the file for prediction only"
    )


def check_type(type_: object, shape: str, where: str) -> str:
    """An entity type: a string that is not blank."""
    if not isinstance(type_, str):
        raise InputError(f"{where}: the entity type {shown(type_)} is not a string; {shape}")
    if not type_.strip():
        raise InputError(f"{where}: the entity type {type_!r} is empty; name it; {shape}")
    check_encodable(type_, "an entity type", where)
    return type_


def check_offsets(start: object, end: object, text: str, shape: str, where: str) -> tuple[int, int]:
    """Half-open offsets, after checking that they are integers and in the text."""
    if type(start) is not int or type(end) is not int:
        raise InputError(f"{where}: the offsets {shown(start)} and {shown(end)} are not integers; {shape}")
    if not 0 <= start < end <= len(text):
        raise InputError(
            f"{where}: span [{start}, {end}] is not in the text of {len(text)} characters; offsets count characters "
            "from 0, the end is not included: 0 <= start < end <= length"
        )
    return start, end


def object_entities(entities: object, shape: str, where: str) -> Iterator[dict]:
    """The objects of a list of entities."""
    if not isinstance(entities, list):
        raise InputError(f'{where}: "entities" is {shown(entities)}, not a list; {shape}')
    for entity in entities:
        if not isinstance(entity, dict):
            raise InputError(f"{where}: entity {shown(entity)} is not an object; {shape}")
        yield entity


def field(entity: dict, key: str, shape: str, where: str) -> object:
    if key not in entity:
        raise InputError(f'{where}: entity {shown(entity)} has no "{key}"; {shape}')
    return entity[key]
