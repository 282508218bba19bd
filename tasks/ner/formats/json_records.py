"""What the JSON formats share: checks of texts, types and spans."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_lines import check_encodable, json_text
from tasks.common.texts.text_files import shown


def labelled_text(record: dict, where: str) -> str:
    """The text of a labelled record; it must not be empty."""
    text = json_text(record, where)
    if not text:
        raise InputError(f'{where}: "text" is empty; remove the line or give it a text')
    return text


def labels(record: dict, keys: tuple[str, ...], without: str, where: str) -> object:
    """What a record has under the first of ``keys`` that it has; ``without`` shows a text without entities."""
    for key in keys:
        if key in record:
            return record[key]
    raise InputError(
        f'{where}: no "{keys[0]}", the file is unlabelled; give labelled data (a text without entities has '
        f"{without}) or use the file for prediction only"
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
