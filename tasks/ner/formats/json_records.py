"""What the JSON formats share: checks of texts, types and spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.language import Message
from tasks.common.texts.json_lines import check_encodable, json_text
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example, make_example

Records = Iterable[tuple[str, dict]]  # pairs ("path:line", record), of JSON lines, a JSON list or a table


def labeled_text(record: dict, where: str) -> str:
    """The text of a labeled record; it must not be empty."""
    text = json_text(record, where)
    if not text:
        raise InputError('{where}: "text" is empty; remove the line or give it a text', where=where)
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
        '{where}: no "{key}", the file is unlabeled; give labeled data (a text without entities has '
        "{without}) or use the file for prediction only",
        where=where,
        key=keys[0],
        without=without,
    )


def check_type(type_: object, shape: str, where: str) -> str:
    """An entity type: a string that is not blank."""
    if not isinstance(type_, str):
        raise InputError(
            "{where}: the entity type {type} is not a string; {shape}", where=where, type=shown(type_), shape=shape
        )
    if not type_.strip():
        raise InputError(
            "{where}: the entity type {type!r} is empty; name it; {shape}", where=where, type=type_, shape=shape
        )
    check_encodable(type_, Message("an entity type"), where)
    return type_


def check_offsets(start: object, end: object, text: str, shape: str, where: str) -> tuple[int, int]:
    """Half-open offsets, after checking that they are integers and in the text."""
    if type(start) is not int or type(end) is not int:
        raise InputError(
            "{where}: the offsets {start} and {end} are not integers; {shape}",
            where=where,
            start=shown(start),
            end=shown(end),
            shape=shape,
        )
    if not 0 <= start < end <= len(text):
        raise InputError(
            "{where}: span [{start}, {end}] is not in the text of {length} characters; offsets count characters "
            "from 0, the end is not included: 0 <= start < end <= length",
            where=where,
            start=start,
            end=end,
            length=len(text),
        )
    return start, end


def object_entities(entities: object, shape: str, where: str) -> Iterator[dict]:
    """The objects of a list of entities."""
    if not isinstance(entities, list):
        raise InputError(
            '{where}: "entities" is {entities}, not a list; {shape}', where=where, entities=shown(entities), shape=shape
        )
    for entity in entities:
        if not isinstance(entity, dict):
            raise InputError(
                "{where}: entity {entity} is not an object; {shape}", where=where, entity=shown(entity), shape=shape
            )
        yield entity


def field(entity: dict, key: str, shape: str, where: str) -> object:
    if key not in entity:
        raise InputError(
            '{where}: entity {entity} has no "{key}"; {shape}', where=where, entity=shown(entity), key=key, shape=shape
        )
    return entity[key]
