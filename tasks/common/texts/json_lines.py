"""JSON lines: records with their place, and checks of what every recipe reads from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from tasks.common.errors import InputError
from tasks.common.language import Message
from tasks.common.texts.text_files import BLANKS, place, shown

TEXT_KEYS = ("text", "sentence")  # where a text without a label, or of a class, may stand


def json_records(lines: list[str], name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", JSON object) of the lines that are not blank."""
    for number, line in enumerate(lines, 1):
        if line.strip(BLANKS):
            where = place(name, number)
            yield where, parse_line(line, where)


def parse_line(line: str, where: str) -> dict:
    """The JSON object of a line."""
    remedy = Message('every line of this file has to be one JSON object such as {"text": "...", "label": ...}')
    try:
        record = json.loads(line, object_pairs_hook=lambda pairs: distinct_keys(pairs, where))
    except json.JSONDecodeError as error:
        raise InputError(
            "{where}: broken JSON at column {column} ({reason}); {remedy}",
            where=where,
            column=error.colno,
            reason=error.msg,
            remedy=remedy,
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            "{where}: JSON that cannot be read ({error}); {remedy}", where=where, error=error, remedy=remedy
        ) from None
    if not isinstance(record, dict):
        raise InputError(
            "{where}: JSON {record} is not an object; {remedy}", where=where, record=shown(record), remedy=remedy
        )
    return record


def distinct_keys(pairs: list[tuple[str, object]], where: str) -> dict:
    """A JSON object; raises InputError where a key is repeated, as its first value would be lost."""
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InputError(
            "{where}: key {twice} is repeated in a JSON object; merge its values into one",
            where=where,
            twice=shown(twice),
        )
    return record


def json_line(record: dict) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def json_text(record: dict, where: str, keys: tuple[str, ...] = ("text",)) -> str:
    """The text of a record, under the first of ``keys`` that it has; it may be empty."""
    key = next((key for key in keys if key in record), keys[0])
    text = record.get(key)
    if not isinstance(text, str):
        found = (
            Message('"{key}" is {text}, not a string', key=key, text=shown(text))
            if key in record
            else Message('there is no "{key}"', key=key)
        )
        raise InputError(
            '{where}: {found}; give each line its text as in {{"{key}": "..."}}', where=where, found=found, key=key
        )
    check_encodable(text, f'"{key}"', where)
    return text


def check_encodable(text: str, what: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            "{where}: {what} holds half of a surrogate pair ({character!r} at character {position}); "
            "write the character itself or both halves",
            where=where,
            what=what,
            character=text[error.start],
            position=error.start,
        ) from None
