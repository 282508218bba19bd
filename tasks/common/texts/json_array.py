"""One JSON list of records, with the place of each."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_lines import distinct_keys
from tasks.common.texts.text_files import shown

_SPACE = " \t\n\r"


def array_records(content: str, name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", JSON object) of a list; read one by one, as ``json.loads`` of all has no places. A member
    that is a string is the object with this ``text``; one that is a text and an object is the object with the text."""
    remedy = "the file has to be one JSON list of objects, [{...}, {...}]"

    def fail(message: str, position: int):
        return InputError(f"{name}:{content.count(chr(10), 0, position) + 1}: {message}; {remedy}")

    def skip(position: int) -> int:
        while position < len(content) and content[position] in _SPACE:
            position += 1
        return position

    position = skip(0)
    if content[position : position + 1] != "[":
        raise fail("no JSON list", position)
    position = skip(position + 1)
    line, counted = 1, 0
    more = content[position : position + 1] != "]"
    while more:
        line, counted = line + content.count("\n", counted, position), position
        where = f"{name}:{line}"
        decoder = json.JSONDecoder(object_pairs_hook=lambda pairs, where=where: distinct_keys(pairs, where))
        try:
            record, position = decoder.raw_decode(content, position)
        except json.JSONDecodeError as error:
            raise fail(f"broken JSON at column {error.colno} ({error.msg})", error.pos) from None
        except (ValueError, RecursionError) as error:
            raise fail(f"JSON that cannot be read ({error})", position) from None
        yield where, _as_object(record, where, remedy)
        position = skip(position)
        more = content[position : position + 1] == ","
        if more:
            position = skip(position + 1)
        elif content[position : position + 1] != "]":
            raise fail("neither ',' nor ']' after an object", position)
    if skip(position + 1) < len(content):
        raise fail("more text after the list", skip(position + 1))


def _as_object(record, where, remedy):
    if isinstance(record, str):
        return {"text": record}
    if isinstance(record, list) and list(map(type, record)) == [str, dict] and "text" not in record[1]:
        return {"text": record[0], **record[1]}
    if not isinstance(record, dict):
        raise InputError(f"{where}: JSON {shown(record)} is not an object; {remedy}")
    return record
