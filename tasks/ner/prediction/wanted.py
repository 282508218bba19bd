"""Which of the found entities to keep, by type and probability and with one decision per mention; and entities that the
user lists as terms or regular expressions, to be forced or hinted at."""

from __future__ import annotations

import bisect
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.common.errors import InputError
from tasks.common.process import time_limit
from tasks.common.run_config import read_mapping
from tasks.common.texts.text_files import read_text, shown, split_lines
from tasks.ner.arguments import of_types
from tasks.ner.examples import Entity, without_overlaps
from tasks.ner.features.gazetteer import automaton_of, found_in

HINT_LOGIT = 3.0  # times the temperature: how far a hint lowers the threshold, as from probability 0.5 to 0.05
PATTERN_SECONDS = 2.0  # of processor time for a pattern in 10,000 characters, or in fewer
MODES = FORCE, HINT = ("force", "hint")
Row = tuple[str, str, str]  # term or pattern, type, mode


@dataclass(frozen=True)
class Wanted:
    """Which entities of a text to keep.

    Attributes:
        types: types to find; None for all types of the model and of ``listed``.
        min_probability: lowest probability, for all types or for each type named; None for the model's thresholds.
        top_k: keep this many entities of a text, the most probable ones; None for all.
        consistent: decide the same for all places of a mention: a string that is found as a type at more than half of
            its places in a text is found at all of them, otherwise at none.
        listed: entities that are forced or hinted at; None for none.
    """

    types: tuple[str, ...] | None = None
    min_probability: float | dict[str, float] | None = None
    top_k: int | None = None
    consistent: bool = False
    listed: Listed | None = None

    @classmethod
    def of(
        cls,
        dictionary: str | os.PathLike | None = None,
        patterns: str | os.PathLike | None = None,
        types: Iterable[str] | None = None,
        **options: Any,
    ) -> Wanted:
        """Create from the options of ``paddle-rope predict``; ``dictionary`` and ``patterns`` are files of lists."""
        terms = () if dictionary is None else read_terms(dictionary)
        expressions = () if patterns is None else read_patterns(patterns)
        listed = Listed(terms, expressions) if terms or expressions else None
        return cls(types if types is None else tuple(types), listed=listed, **options)

    def thresholds(self, config: Any) -> list[float]:
        """For each type of a model, the logit above which a span can be kept.

        Raises:
            InputError: the model has no such type, or a probability is not between 0 and 1.
        """
        least = self.min_probability
        if not isinstance(least, dict):
            least = {} if least is None else dict.fromkeys(config.types, least)
        self._check_types(least, config)
        own, temperatures = (of_types(one, len(config.types)) for one in (config.thresholds, config.temperatures))
        return [
            _logit(least[kind]) * temperature if kind in least else bound
            for kind, bound, temperature in zip(config.types, own, temperatures)
        ]

    def candidates(self, config: Any) -> list[float]:
        """The :meth:`thresholds`, lowered if there are hints."""
        lowered = HINT_LOGIT if self.listed is not None and self.listed.hinted_types else 0.0
        bounds, temperatures = self.thresholds(config), of_types(config.temperatures, len(config.types))
        return [bound - lowered * temperature for bound, temperature in zip(bounds, temperatures)]

    def check(self, config: Any) -> None:
        """Raise InputError if a model cannot give these entities."""
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"top_k must be at least 1, got {self.top_k}")
        listed, hinted = (self.listed.types, self.listed.hinted_types) if self.listed else ((), ())
        self._check_types([*hinted, *{*(self.types or ())}.difference(listed)], config)
        self.thresholds(config)

    def _check_types(self, types, config):
        unknown = sorted(set(types).difference(config.types))
        if unknown:
            raise InputError(f"the model has no type {unknown[0]!r}; its types are {', '.join(config.types)}")

    def kept(self, text: str, entities: list[Entity], config: Any) -> list[Entity]:
        """The entities of a text to keep, from its candidates and the listed entities, ordered."""
        bounds = dict(zip(config.types, self.thresholds(config)))
        hinted = self.listed.hinted(text) if self.listed else ()
        entities = [one for one in entities if one.score > bounds[one.type] or one[:3] in hinted]
        if self.listed is not None:
            for forced in self.listed.forced(text, config.allow_overlap):
                entities = _with_forced(entities, forced)
        if self.types is not None:
            entities = [entity for entity in entities if entity.type in self.types]
        settled = list if config.allow_overlap else without_overlaps
        entities = settled(entities)
        if self.consistent:
            entities = settled(_same_everywhere(text, entities))  # what it adds may overlap
        if self.top_k is not None:
            entities = sorted(entities, key=lambda entity: (-entity.probability, entity))[: self.top_k]
        return sorted(entities)


def _logit(probability):
    if not 0 < probability < 1:
        raise InputError(f"min_probability must be between 0 and 1, got {probability:g}")
    return math.log(probability / (1 - probability))


def _with_forced(entities: list[Entity], forced: list[Entity]) -> list[Entity]:
    """The entities that contradict no forced entity, and the forced entities, which do not overlap."""
    ends = [one.end for one in forced]

    def fits(entity):
        near = {bisect.bisect_right(ends, place) for place in (entity.start, entity.end - 1)} - {len(forced)}
        return entity.score == math.inf or not any(_contradict(entity, forced[number]) for number in near)

    return [entity for entity in entities if fits(entity)] + forced


def _contradict(one: Entity, forced: Entity) -> bool:
    """Whether two spans are the same or overlap without being nested."""
    if one[:2] == forced[:2]:
        return True
    return one.start < forced.start < one.end < forced.end or forced.start < one.start < forced.end < one.end


def _same_everywhere(text: str, entities: list[Entity]) -> list[Entity]:
    by_mention: dict[tuple[str, str], list[Entity]] = {}
    taken = bytearray(len(text))
    for entity in entities:
        taken[entity.start : entity.end] = b"\1" * (entity.end - entity.start)
        by_mention.setdefault((text[entity.start : entity.end], entity.type), []).append(entity)
    kept: list[Entity] = []
    for (string, kind), found in by_mention.items():
        places = (
            (match.start(), match.start() + len(string)) for match in re.finditer(f"(?={re.escape(string)})", text)
        )
        others = [(start, end) for start, end in places if not any(taken[start:end])]
        if len(found) > len(others):
            mean = [sum(numbers) / len(found) for numbers in zip(*(entity[3:] for entity in found))]
            kept += found + [Entity(*place, kind, *mean) for place in others]
        else:
            kept += [entity for entity in found if entity.score == math.inf]
    return sorted(kept)


# ---- what the user lists


class Listed:
    """Finds listed entities in texts. Threads may share it.

    Args:
        terms: (string, type, ``"force"`` or ``"hint"``) of each; a string may have several types.
        patterns: the same with regular expressions.

    Attributes:
        types: all types in terms and patterns.
        hinted_types: types with at least one hint.
    """

    def __init__(self, terms: Sequence[Row] = (), patterns: Sequence[Row] = ()):
        types_of: dict[str, dict[str, dict[str, None]]] = {mode: {} for mode in MODES}
        for string, kind, mode in terms:
            types_of[mode].setdefault(string, {})[kind] = None
        self._terms = {mode: automaton_of(strings) for mode, strings in types_of.items()}
        self._patterns = [(re.compile(pattern), kind, mode) for pattern, kind, mode in patterns]
        self.types = {kind for _, kind, _ in (*terms, *patterns)}
        self.hinted_types = {kind for _, kind, mode in (*terms, *patterns) if mode == HINT}

    def forced(self, text: str, nested: bool) -> list[list[Entity]]:
        """The forced entities, with an infinite score, in groups without overlaps: one group per type if entities may
        be ``nested``, otherwise a single group. Where members of a group overlap, the one that begins first is kept,
        and the longest of several that begin together."""
        groups: dict[str, list[Entity]] = {}
        for start, end, kind in sorted(self._find(text, FORCE), key=lambda span: (span[0], -span[1], span[2])):
            group = groups.setdefault(kind if nested else "", [])
            if not group or start >= group[-1].end:
                group.append(Entity(start, end, kind, math.inf, 1.0))
        return list(groups.values())

    def hinted(self, text: str) -> set[tuple[int, int, str]]:
        """The (start, end, type) that are hinted at."""
        return set(self._find(text, HINT))

    def _find(self, text: str, mode: str) -> Iterator[tuple[int, int, str]]:
        for start, end, types in found_in(text, self._terms[mode]):
            yield from ((start, end, kind) for kind in types)
        yield from self._matches(text, [(pattern, kind) for pattern, kind, one in self._patterns if one == mode])

    def _matches(self, text, patterns):
        found: list[tuple[int, int, str]] = []
        try:
            with time_limit(PATTERN_SECONDS * max(1, len(text) / 10_000) * len(patterns)):
                for pattern, kind in patterns:
                    found += [(*match.span(), kind) for match in pattern.finditer(text) if match.group()]
        except TimeoutError:
            raise InputError(
                f"the pattern {shown(pattern.pattern)} takes too long in a text of {len(text):,} characters; write it "
                "without repetitions of what repeats, such as (a+)+"
            ) from None
        return found


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
    """The regular expressions of a YAML file: for each type an expression, a list, or ``{force: [...], hint: [...]}``.

    Raises:
        InputError: the file has another form, or an expression is wrong.
    """
    form = "write TYPE: EXPRESSION, TYPE: [EXPRESSION, ...], or TYPE: {force: [...], hint: [...]}"
    rows: list[Row] = []
    for kind, of_type in read_mapping(path, form).items():
        for mode, patterns in (of_type if isinstance(of_type, dict) else {FORCE: of_type}).items():
            for pattern in patterns if isinstance(patterns, list) else [patterns]:
                if mode not in MODES or not isinstance(pattern, str) or not kind.strip():
                    raise InputError(f"{path}: {kind}: {mode}: {pattern!r}; {form}")
                try:
                    re.compile(pattern)
                except (re.error, OverflowError, RecursionError) as error:
                    raise InputError(f"{path}: {kind}: {pattern!r} is no regular expression: {error}") from None
                rows.append((pattern, kind, mode))
    return rows
