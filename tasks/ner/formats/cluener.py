"""CLUENER: JSON lines, ``{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}``.

Type, surface, then pairs of first and last character: the end is INCLUSIVE in the file. Other keys are ignored.
Source: https://github.com/CLUEbenchmark/CLUENER2020
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import json_line
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.json_records import Records, check_type, read_records

SHAPE = 'write it as {"type": {"surface": [[first, last]]}}'


def read(records: Records, name: str) -> list[Example]:
    return read_records(records, ("label",), '"label": {}', _entities)


def write(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        label = {}
        for entity in example.entities:
            surfaces = label.setdefault(entity.type, {})
            surfaces.setdefault(example.surface(entity), []).append([entity.start, entity.end - 1])
        yield json_line({"text": example.text, "label": label})


def _entities(label: object, text: str, where: str) -> Iterator[Entity]:
    if not isinstance(label, dict):
        raise InputError(f'{where}: "label" is {shown(label)}, not an object; {SHAPE}')
    for type_, surfaces in label.items():
        check_type(type_, SHAPE, where)
        if not isinstance(surfaces, dict):
            raise InputError(f"{where}: label {shown(type_)} is {shown(surfaces)}, not an object; {SHAPE}")
        for surface, pairs in surfaces.items():
            if not isinstance(pairs, list):
                raise InputError(f"{where}: the spans of {shown(surface)} are {shown(pairs)}, not a list; {SHAPE}")
            holds = _Occurrences(surface, text)
            for pair in pairs:
                start, last = _check_span(pair, surface, text, where, holds)
                yield Entity(start, last + 1, type_)


class _Occurrences:
    """Whether a surface stands in a text at a place: asked again and again, as quick as if it were asked once.

    If the surface stands ``step`` characters before a place, and is its own continuation after ``step`` characters,
    only the last ``step`` characters have to be compared.
    """

    def __init__(self, surface: str, text: str):
        self._surface, self._text = surface, text
        self._last = -len(surface)  # where it was found last
        self._continues: dict[int, bool] = {0: True}  # by steps

    def __call__(self, start: int, end: int) -> bool:
        surface, size, step = self._surface, len(self._surface), start - self._last
        if end - start != size:
            return False
        if not 0 <= step < size:
            found = self._text.startswith(surface, start)
        else:
            if step not in self._continues:
                self._continues[step] = surface.startswith(surface[step:])
            found = self._continues[step] and self._text.startswith(surface[size - step :], end - step)
        if found:
            self._last = start
        return found


def _check_span(pair: object, surface: str, text: str, where: str, holds: _Occurrences) -> tuple[int, int]:
    """First and last character of a span, after checking that it is in the text and holds the surface."""
    if not (isinstance(pair, list) and len(pair) == 2 and all(type(offset) is int for offset in pair)):
        raise InputError(
            f"{where}: span {shown(pair)} of {shown(surface)} is not a pair of integers; write it as [first, last]"
        )
    start, last = pair
    if not 0 <= start <= last < len(text):
        raise InputError(
            f"{where}: span {shown(pair)} of {shown(surface)} is not in the text of {len(text)} characters; offsets "
            "count characters from 0, the last is included: 0 <= first <= last < length"
        )
    if not holds(start, last + 1):
        found = text[start : last + 1]
        hint = f" (here [{start}, {last - 1}])" if text[start:last] == surface else ""
        raise InputError(
            f"{where}: span {shown(pair)} holds {shown(found)}, but the label says {shown(surface)}; correct the "
            f"offsets, which count characters from 0, the last included{hint}, or the surface"
        )
    return start, last
