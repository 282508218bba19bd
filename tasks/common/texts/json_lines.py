"""JSON lines: records with their place, and checks of what every recipe reads from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from tasks.common.errors import InputError
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
    remedy = 'every line of this file has to be one JSON object such as {"text": "...", "label": ...}'
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
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InputError(f"{where}: key {shown(twice)} is repeated in a JSON object; merge its values into one")
    return record


def json_line(record: dict) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def json_text(record: dict, where: str, keys: tuple[str, ...] = ("text",)) -> str:
    """The text of a record, under the first of ``keys`` that it has; it may be empty."""
    key = next((key for key in keys if key in record), keys[0])
    text = record.get(key)
    if not isinstance(text, str):
        found = f'"{key}" is {shown(text)}, not a string' if key in record else f'there is no "{key}"'
        raise InputError(f'{where}: {found}; give each line its text as in {{"{key}": "..."}}')
    check_encodable(text, f'"{key}"', where)
    return text


def check_encodable(text: str, what: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: {what} holds half of a surrogate pair ({text[error.start]!r} at character {error.start}); "
            "write the character itself or both halves"
        ) from None
