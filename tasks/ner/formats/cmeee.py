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
from tasks.common.texts.json_lines import distinct_keys
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.json_records import check_type, field, object_entities, read_records

SHAPE = 'write it as {"start_idx": first, "end_idx": last, "type": "type", "entity": "surface"}'
_SPACE = " \t\n\r"


def read(lines: list[str], name: str) -> list[Example]:
    return read_records(_records("\n".join(lines), name), ("entities",), '"entities": []', _entities)


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


def _records(content: str, name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", JSON object) of a list; read one by one, as ``json.loads`` of all has no places."""
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
        if not isinstance(record, dict):
            raise InputError(f"{where}: JSON {shown(record)} is not an object; {remedy}")
        yield where, record
        position = skip(position)
        more = content[position : position + 1] == ","
        if more:
            position = skip(position + 1)
        elif content[position : position + 1] != "]":
            raise fail("neither ',' nor ']' after an object", position)
    if skip(position + 1) < len(content):
        raise fail("more text after the list", skip(position + 1))


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
