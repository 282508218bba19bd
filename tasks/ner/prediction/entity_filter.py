"""The filter, which keeps found entities by type and probability and with one decision per mention; and the ruler,
which forces or hints at entities that the user gives as terms or regular expressions."""

from __future__ import annotations

import functools
import math
import os
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from paddle_rope.options import Kind, option, optional
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.process import time_limit
from paddle_rope.tasks.common.run_config import read_mapping
from paddle_rope.tasks.common.texts.text_files import read_text, shown, split_lines
from paddle_rope.tasks.ner.arguments import FilterOptions, NerOptions, of_types
from paddle_rope.tasks.ner.examples import Entity, without_overlaps
from paddle_rope.tasks.ner.features.word_features import automaton_of, found_in

LEAST_PROBABILITY = 0.001  # to ask for; nearly all spans of a text are less probable
HINT_LOGIT = 3.0  # times the temperature: how far a hint lowers the threshold, as from probability 0.5 to 0.05
PATTERN_SECONDS = 2.0  # of processor time for a pattern in 10,000 characters, or in fewer
MODES = FORCE, HINT = ("force", "hint")
Row = tuple[str, str, str]  # term or pattern, type, mode
_WORD = frozenset(f"{string.ascii_letters}{string.digits}_")


@dataclass
class EntityFilter(FilterOptions):
    """Which entities of a text to keep. Without ``min_probability`` the model's thresholds decide; without ``types``
    entities have all types of the model and of the ``ruler``. ``consistent``: a string that is found as a type at more
    than half of its places in a text is found at all of them, otherwise at none."""

    ruler: EntityRuler | None = option(
        None, "what is an entity by rule", optional(Kind("a ruler", lambda value: isinstance(value, EntityRuler)))
    )

    @classmethod
    def of(cls, options: NerOptions) -> EntityFilter:
        """Create from the options of a predictor, whose ``dictionary`` and ``patterns`` are files."""
        terms = () if options.dictionary is None else read_terms(options.dictionary)
        patterns = () if options.patterns is None else read_patterns(options.patterns)
        chosen = {name: getattr(options, name) for name in FilterOptions.names()}
        return cls(**chosen, ruler=EntityRuler(terms, patterns) if terms or patterns else None)

    def thresholds(self, config: Any) -> list[float]:
        """For each type of a model, the logit above which a span can be kept."""
        least = self._least(config)
        own, temperatures = (of_types(one, len(config.types)) for one in (config.thresholds, config.temperatures))
        return [
            math.log(least[kind] / (1 - least[kind])) * temperature if kind in least else bound
            for kind, bound, temperature in zip(config.types, own, temperatures)
        ]

    def candidates(self, config: Any) -> list[float]:
        """The :meth:`thresholds`, where the model's are lowered for types with hints."""
        hinted = (self.ruler.hinted_types if self.ruler else set()).difference(self._least(config))
        bounds, temperatures = self.thresholds(config), of_types(config.temperatures, len(config.types))
        return [
            bound - HINT_LOGIT * temperature * (kind in hinted)
            for kind, bound, temperature in zip(config.types, bounds, temperatures)
        ]

    def _least(self, config):
        """dict from types to their lowest probability, where there is one."""
        least = self.min_probability
        return least if isinstance(least, dict) else {} if least is None else dict.fromkeys(config.types, least)

    def check(self, config: Any) -> None:
        """Raise InputError if a model cannot give these entities."""
        of_rules, hinted = (self.ruler.types, self.ruler.hinted_types) if self.ruler else (set(), set())
        least = self._least(config)
        unknown = sorted({*hinted, *least, *{*(self.types or ())} - of_rules}.difference(config.types))
        if unknown:
            raise InputError(f"the model has no type {shown(unknown[0])}; its types are {', '.join(config.types)}")
        lowest = min(least.values(), default=1)
        if self.top_k is None and lowest < LEAST_PROBABILITY:
            raise InputError(f"min_probability must be at least {LEAST_PROBABILITY} without top_k, got {lowest:g}")

    def kept(self, text: str, entities: list[Entity], config: Any) -> list[Entity]:
        """The entities of a text to keep, from its candidates and by rule, ordered."""
        bounds, of_hints = (dict(zip(config.types, one(config))) for one in (self.thresholds, self.candidates))
        hinted = self.ruler.hinted(text) if self.ruler else ()
        entities = [one for one in entities if one.score > (of_hints if one[:3] in hinted else bounds)[one.type]]
        if self.ruler is not None:
            entities = _with_forced(text, entities, self.ruler.forced(text, config.allow_overlap))
        if self.types is not None:
            types = set(self.types)
            entities = [entity for entity in entities if entity.type in types]
        settled = list if config.allow_overlap else without_overlaps
        entities = settled(entities)
        if self.consistent:
            entities = settled(_same_everywhere(text, entities))  # what it adds may overlap
        if self.top_k is not None:
            entities = sorted(entities, key=lambda entity: (-entity.probability, entity))[: self.top_k]
        return sorted(entities)


def _with_forced(text: str, entities: list[Entity], forced: list[Entity]) -> list[Entity]:
    """The forced entities, and the others unless one has the span of a forced entity or crosses one: overlaps it
    without being nested."""
    same = {one[:2] for one in forced}
    last_end, first_start = ([place] * (len(text) + 1) for place in (0, len(text)))  # of those that begin, end at each
    for start, end, *_ in forced:
        last_end[start] = max(last_end[start], end)
        first_start[end] = min(first_start[end], start)

    def fits(one):
        inside = slice(one.start + 1, one.end)
        crosses = max(last_end[inside], default=0) > one.end or min(first_start[inside], default=one.start) < one.start
        return not crosses and one[:2] not in same

    return [one for one in entities if fits(one)] + forced


def _same_everywhere(text: str, entities: list[Entity]) -> list[Entity]:
    by_mention: dict[tuple[str, str], list[Entity]] = {}
    taken = bytearray(len(text))
    for entity in entities:
        taken[entity.start : entity.end] = b"\1" * (entity.end - entity.start)
        by_mention.setdefault((text[entity.start : entity.end], entity.type), []).append(entity)
    free: dict[str, list[tuple[int, int]]] = {mention: [] for mention, _ in by_mention}  # where no entity is
    for start, end, mention in found_in(text, automaton_of({mention: mention for mention in free})):
        if taken.find(1, start, end) < 0:
            free[mention].append((start, end))
    kept: list[Entity] = []
    for (mention, kind), found in by_mention.items():
        others = free[mention]
        if len(found) > len(others):
            mean = [sum(numbers) / len(found) for numbers in zip(*(entity[3:] for entity in found))]
            kept += found + [Entity(*place, kind, *mean) for place in others]
        else:
            kept += [entity for entity in found if entity.score == math.inf]
    return sorted(kept)


# ---- what is an entity by rule


class EntityRuler:
    """Finds entities by rule in texts. Threads may share it. ``terms`` are (string, type, ``"force"`` or ``"hint"``)
    and ``patterns`` the same with regular expressions; a string may have several types. ``types`` are all types in
    both, ``hinted_types`` those with a hint, ``characters`` the number in all terms."""

    def __init__(self, terms: Sequence[Row] = (), patterns: Sequence[Row] = ()):
        self._terms = terms
        self._patterns = [(re.compile(pattern), kind, mode) for pattern, kind, mode in patterns]
        self.types = {kind for _, kind, _ in (*terms, *patterns)}
        self.hinted_types = {kind for _, kind, mode in (*terms, *patterns) if mode == HINT}
        self.characters = sum(len(term) for term, _, _ in terms)

    @functools.cached_property
    def _automata(self) -> dict[str, Any]:
        """What finds the terms of each mode; made by the first thread that needs it, as many terms take a second."""
        types_of: dict[str, dict[str, dict[str, None]]] = {mode: {} for mode in MODES}
        for term, kind, mode in self._terms:
            types_of[mode].setdefault(term, {})[kind] = None
        return {mode: automaton_of(terms) for mode, terms in types_of.items()}

    def forced(self, text: str, nested: bool) -> list[Entity]:
        """The forced entities, with an infinite score. Those of a type do not overlap, and none do unless entities may
        be ``nested``: where several overlap, the one that begins first is kept, and the longest of those that begin
        together."""
        groups: dict[str, dict[int, tuple[int, str]]] = {}  # of those that may not overlap: start -> longest end, type
        for start, end, kind in self.places(text, FORCE):
            longest = groups.setdefault(kind if nested else "", {})
            longest[start] = min(longest.get(start, (0, kind)), (-end, kind))
        forced = []
        for longest in groups.values():
            reached = 0
            for start, (end, kind) in sorted(longest.items()):
                if start >= reached:
                    reached = -end
                    forced.append(Entity(start, reached, kind, math.inf, 1.0))
        return forced

    def hinted(self, text: str) -> set[tuple[int, int, str]]:
        """The (start, end, type) that are hinted at."""
        return set(self.places(text, HINT))

    def places(self, text: str, mode: str) -> Iterator[tuple[int, int, str]]:
        """The (start, end, type) of all terms and patterns of a mode in a text. A term is not found within an ASCII
        word: AI is not in MAIL, 5G not in 15GB."""
        for start, end, types in found_in(text, self._automata[mode]):
            if not (_is_in_word(text, start) or _is_in_word(text, end)):
                yield from ((start, end, kind) for kind in types)
        if patterns := [(pattern, kind) for pattern, kind, one in self._patterns if one == mode]:
            yield from self._matches(text, patterns)

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


def _is_in_word(text, place):
    """Whether the characters on both sides of a place belong to an ASCII word."""
    return 0 < place < len(text) and text[place - 1] in _WORD and text[place] in _WORD


def read_terms(path: str | os.PathLike) -> list[Row]:
    """The rows ``term<TAB>type`` or ``term<TAB>type<TAB>mode`` of a file; without a mode a term is forced. Raises
    InputError if a line has another form."""
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
    Raises InputError if the file has another form, or an expression is wrong."""
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
