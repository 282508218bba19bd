"""Entities that the user lists, as terms or regular expressions: forced, or hinted at."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf

import yaml

from tasks.common.errors import InputError
from tasks.common.texts.text_files import read_text, split_lines
from tasks.ner.examples import Entity
from tasks.ner.features.gazetteer import automaton_of, found_in

MODES = FORCE, HINT = ("force", "hint")
Row = tuple[str, str, str]  # term or pattern, type, mode


class Listed:
    """Finds listed entities in texts. Threads may share it.

    Args:
        terms: (string, type, ``"force"`` or ``"hint"``) of each; a string may have several types.
        patterns: the same with regular expressions.

    Attributes:
        hinted_types: types of which something is hinted at.
    """

    def __init__(self, terms: Iterable[Row] = (), patterns: Iterable[Row] = ()):
        types_of: dict[str, dict[str, str]] = {}
        for string, kind, mode in terms:
            types_of.setdefault(string, {})[kind] = mode
        self._terms = automaton_of(types_of)
        self._patterns = [(re.compile(pattern), kind, mode) for pattern, kind, mode in patterns]
        kinds = [
            *chain.from_iterable(types.items() for types in types_of.values()),
            *(one[1:] for one in self._patterns),
        ]
        self.hinted_types = {kind for kind, mode in kinds if mode == HINT}

    @classmethod
    def read(cls, dictionary: str | os.PathLike | None = None, patterns: str | os.PathLike | None = None) -> Listed:
        """The lists in two files, see :func:`read_terms` and :func:`read_patterns`."""
        return cls(read_terms(dictionary) if dictionary else (), read_patterns(patterns) if patterns else ())

    def forced(self, text: str, nested: bool) -> list[list[Entity]]:
        """The entities that are certain, with an infinite score, in groups without overlaps: one for each type, or only
        one unless entities may be ``nested``. Where members of a group overlap, the one that begins first counts, and
        the longest of several that begin together."""
        groups: dict[str, list[Entity]] = {}
        for start, end, kind in sorted(self._find(text, FORCE), key=lambda span: (span[0], -span[1], span[2])):
            group = groups.setdefault(kind if nested else "", [])
            if not group or start >= group[-1].end:
                group.append(Entity(start, end, kind, inf, 1.0))
        return list(groups.values())

    def hinted(self, text: str) -> set[tuple[int, int, str]]:
        """The (start, end, type) that are hinted at."""
        return set(self._find(text, HINT))

    def _find(self, text: str, mode: str) -> Iterator[tuple[int, int, str]]:
        for start, end, types in found_in(text, self._terms):
            yield from ((start, end, kind) for kind, one in types.items() if one == mode)
        for pattern, kind, one in self._patterns:
            if one == mode:
                yield from ((*match.span(), kind) for match in pattern.finditer(text) if match.group())


def read_terms(path: str | os.PathLike) -> list[Row]:
    """The rows ``term<TAB>type`` or ``term<TAB>type<TAB>mode`` of a file; without a mode a term is forced.

    Raises:
        InputError: a line has another form.
    """
    content, name = read_text(path)
    rows: list[Row] = []
    for number, line in enumerate(split_lines(content), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        row = (*cells, FORCE) if len(cells) == 2 else tuple(cells)
        if len(row) != 3 or not all(row) or row[2] not in MODES:
            raise InputError(f"{name}:{number}: expected term<TAB>type or term<TAB>type<TAB>force|hint, got {line!r}")
        rows.append(row)
    return rows


def read_patterns(path: str | os.PathLike) -> list[Row]:
    """The regular expressions of a YAML file: for each type one, a list, or ``{force: [...], hint: [...]}``.

    Raises:
        InputError: the file has another form, or an expression is wrong.
    """
    content, name = read_text(path)
    try:
        given = yaml.safe_load(content) or {}
    except yaml.YAMLError as error:
        raise InputError(f"{name}: is not YAML ({str(error).splitlines()[0]})") from None
    form = "write TYPE: EXPRESSION, TYPE: [EXPRESSION, ...], or TYPE: {force: [...], hint: [...]}"
    if not isinstance(given, dict):
        raise InputError(f"{name}: expected types with their expressions; {form}")
    rows: list[Row] = []
    for kind, of_type in given.items():
        for mode, patterns in (of_type if isinstance(of_type, dict) else {FORCE: of_type}).items():
            for pattern in patterns if isinstance(patterns, list) else [patterns]:
                if mode not in MODES or not isinstance(pattern, str) or not isinstance(kind, str):
                    raise InputError(f"{name}: {kind}: {mode}: {pattern!r}; {form}")
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise InputError(f"{name}: {kind}: {pattern!r} is no regular expression: {error}") from None
                rows.append((pattern, kind, mode))
    return rows
