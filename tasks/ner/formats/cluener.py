"""CLUENER: JSON lines, ``{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}``.

Type, surface, then pairs of first and last character: the end is INCLUSIVE in the file. Other keys are ignored.
Source: https://github.com/CLUEbenchmark/CLUENER2020
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import json_line
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example
from tasks.ner.formats.records import Records, check_type, read_records

SHAPE = 'write it as {"type": {"surface": [[first, last]]}}'


def read(records: Records, name: str) -> list[Example]:
    return read_records(records, ("label",), _entities)


def write(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        label: dict = {}
        for entity in example.entities:
            surfaces = label.setdefault(entity.type, {})
            surfaces.setdefault(example.surface(entity), []).append([entity.start, entity.end - 1])
        yield json_line({"text": example.text, "label": label})


def _entities(label: object, text: str, where: str) -> Iterator[Entity]:
    for type_, surfaces in _of_kind(label, dict, '"label"', where).items():
        check_type(type_, SHAPE, where)
        for surface, pairs in _of_kind(surfaces, dict, f"label {shown(type_)}", where).items():
            is_at = _finder(surface, text)
            for pair in _of_kind(pairs, list, f"the value of {shown(surface)}", where):
                start, last = _checked(pair, surface, text, where)
                if last + 1 - start != len(surface) or not is_at(start):
                    hint = f" (here [{start}, {last - 1}])" if text[start:last] == surface else ""
                    raise InputError(
                        f"{where}: span [{start}, {last}] holds {shown(text[start : last + 1])}, but the label says "
                        f"{shown(surface)}; correct the offsets, which count characters from 0, the last "
                        f"included{hint}, or the surface"
                    )
                yield Entity(start, last + 1, type_)


def _of_kind(value, kind, what, where):
    if not isinstance(value, kind):
        raise InputError(f"{where}: {what} is {shown(value)}, not {'a list' if kind is list else 'an object'}; {SHAPE}")
    return value


def _checked(pair, surface, text, where):
    """First and last character of a span, which are in the text."""
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
    return start, last


def _finder(surface: str, text: str) -> Callable[[int], bool]:
    """Whether the surface is at an offset of the text; a long surface with many spans is compared about once: where it
    was found ``step`` characters before and continues itself after so many, only its last ``step`` characters are."""
    found_last = -len(surface)
    continues: dict[int, bool] = {0: True}  # by steps

    def is_at(start: int) -> bool:
        nonlocal found_last
        step = start - found_last
        if not 0 <= step < len(surface):
            is_found = text.startswith(surface, start)
        else:
            if step not in continues:
                continues[step] = surface.startswith(surface[step:])
            is_found = continues[step] and text.startswith(surface[len(surface) - step :], found_last + len(surface))
        if is_found:
            found_last = start
        return is_found

    return is_at
