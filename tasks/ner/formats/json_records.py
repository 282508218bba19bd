"""What the JSON formats share: records with their place, and checks of texts, types and spans."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tasks.common.errors import InputError
from tasks.common.text_files import BLANKS, shown


def json_records(lines: list[str], name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", JSON object) of the lines that are not blank."""
    for number, line in enumerate(lines, 1):
        if line.strip(BLANKS):
            where = f"{name}:{number}"
            yield where, parse_line(line, where)


def parse_line(line: str, where: str) -> dict:
    """The JSON object of a line."""
    remedy = 'every line of this file has to be one JSON object such as {"text": "...", "label": {}}'
    try:
        record = json.loads(line, object_pairs_hook=lambda pairs: distinct_keys(pairs, where))
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: broken JSON at column {error.colno} ({error.msg}); {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: JSON that cannot be read ({error}); {remedy}") from None
    if not isinstance(record, dict):
        raise InputError(f"{where}: JSON {shown(record)} is not an object; {remedy}")
    return record


def distinct_keys(pairs: list[tuple[str, object]], where: str) -> dict:
    """A JSON object; raises InputError where a key is repeated, as its first value would be lost."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"{where}: key {shown(twice)} is repeated in a JSON object; merge its values into one")
    return record


def json_line(record: dict) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def json_text(record: dict, where: str) -> str:
    """The text of a record; it may be empty."""
    text = record.get("text")
    if not isinstance(text, str):
        found = f'"text" is {shown(text)}, not a string' if "text" in record else 'there is no "text"'
        raise InputError(f'{where}: {found}; give each line its text as in {{"text": "..."}}')
    check_encodable(text, '"text"', where)
    return text


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


def check_encodable(text: str, what: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: {what} holds half of a surrogate pair ({text[error.start]!r} at character {error.start}); "
            "write the character itself or both halves"
        ) from None


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
