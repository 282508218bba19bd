"""What kinds of errors a model makes.

In each text every gold and every predicted entity gets exactly one place, by these rules in this order. Where several
pairs are possible the one with the larger overlap (shared characters over all characters of both) is taken first, then
that with the lower offsets; an entity is in one pair at most.

1. ``correct``: same boundaries and type.
2. ``type``: same boundaries, other type.
3. ``boundary``: same type, a shared character, other boundaries: ``too_long`` if the prediction contains the gold
   entity, ``too_short`` if it is contained in it, otherwise ``crossing``.
4. ``both``: a shared character, other boundaries and other type.
5. ``missed`` gold entities and ``spurious`` predictions: the rest.

So correct + type + boundary + both + missed are all gold entities, and correct + type + boundary + both + spurious all
predictions.
"""

import bisect
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Optional

from tasks.common.reports.tables import f1_row
from tasks.ner.examples import Entity, Example
from tasks.ner.metrics import counts_by

KINDS = ("correct", "type", "boundary", "both", "missed", "spurious")
BOUNDARY_ERRORS = ("too_long", "too_short", "crossing")
# Lengths in characters, first and last.
LENGTHS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 9), (10, 14), (15, 24), (25, None))


class Match(NamedTuple):
    """A gold and a predicted entity that belong together, or one without the other."""

    kind: str  # as above, and of the boundary errors one of BOUNDARY_ERRORS
    gold: Optional[Entity]
    predicted: Optional[Entity]


class _Overlaps:
    """Entities of a text, searched by overlap with a span; a long text has thousands."""

    def __init__(self, entities):
        self._entities = sorted(entities)
        self._starts = [entity.start for entity in self._entities]
        self._longest = max((entity.end - entity.start for entity in self._entities), default=0)

    def with_span(self, span):
        first = bisect.bisect_right(self._starts, span[0] - self._longest)
        last = bisect.bisect_left(self._starts, span[1])
        return [entity for entity in self._entities[first:last] if entity.end > span[0]]


def match_entities(gold: Iterable[Entity], predicted: Iterable[Entity]) -> list[Match]:
    """Give each gold and each predicted entity of one text its place; the matches are ordered by offsets."""
    gold, predicted = ({entity[:3]: entity for entity in entities} for entities in (gold, predicted))
    matches = [Match("correct", gold.pop(span), predicted.pop(span)) for span in gold.keys() & predicted.keys()]
    overlapping = _Overlaps(predicted.values())
    candidates = []
    for wanted in gold.values():
        for found in overlapping.with_span(wanted):
            overlap = min(wanted.end, found.end) - max(wanted.start, found.start)
            union = max(wanted.end, found.end) - min(wanted.start, found.start)
            rank = 0 if wanted[:2] == found[:2] else 1 if wanted.type == found.type else 2
            candidates.append((rank, -overlap / union, wanted[:3], found[:3]))
    for rank, _, wanted, found in sorted(candidates):
        if wanted in gold and found in predicted:
            kind = ("type", _boundary_error(wanted, found), "both")[rank]
            matches.append(Match(kind, gold.pop(wanted), predicted.pop(found)))
    matches += [Match("missed", entity, None) for entity in gold.values()]
    matches += [Match("spurious", None, entity) for entity in predicted.values()]
    return sorted(matches, key=lambda match: ((match.gold or match.predicted)[:3], match.kind))


def _boundary_error(gold, found):
    if found[0] <= gold[0] and gold[1] <= found[1]:
        return "too_long"
    return "too_short" if gold[0] <= found[0] and found[1] <= gold[1] else "crossing"


def error_analysis(examples: list[Example], found: list[list[Entity]]) -> dict:
    """Errors of a corpus, counted, from labeled examples and what is found in each.

    Returns:
        dict with

        * ``errors``: number of ``correct``, ``type``, ``boundary``, ``both``, ``missed`` and ``spurious``, and of the
          boundary errors ``too_long``, ``too_short`` and ``crossing``;
        * ``confusions``: dicts with ``gold``, ``predicted`` and ``count`` of entities found with the same boundaries as
          another type, the most frequent first;
        * ``by_length``: rows with ``from``, ``to`` (None: no end) and the scores of the entities of so many characters;
        * ``by_nesting``: scores of ``nested`` and ``flat`` entities; None where no gold entity is nested. Nested is
          what shares a character with two or more gold entities, itself counted.
    """
    matches = [match for one, entities in zip(examples, found) for match in match_entities(one.entities, entities)]
    lengths = counts_by(examples, found, lambda _: _length_class)
    nesting = counts_by(examples, found, _nesting_of)
    counts = Counter(match.kind for match in matches)
    counts["boundary"] = sum(counts[kind] for kind in BOUNDARY_ERRORS)
    confused = Counter((match.gold.type, match.predicted.type) for match in matches if match.kind == "type")
    return {
        "errors": {kind: counts[kind] for kind in (*KINDS, *BOUNDARY_ERRORS)},
        "confusions": [
            {"gold": gold, "predicted": predicted, "count": count}
            for (gold, predicted), count in sorted(confused.items(), key=lambda item: (-item[1], item[0]))
        ],
        "by_length": [{"from": one[0], "to": one[1], **f1_row(*lengths[one])} for one in LENGTHS if one in lengths],
        "by_nesting": {name: f1_row(*nesting[name]) for name in ("nested", "flat")} if nesting["nested"][0] else None,
    }


def _length_class(span):
    return next((first, last) for first, last in LENGTHS if last is None or span[1] - span[0] <= last)


def _nesting_of(example):
    overlapping = _Overlaps(example.entities)
    return lambda span: "nested" if len(overlapping.with_span(span)) > 1 else "flat"


def worst_examples(examples: list[Example], predicted: list[list[Entity]], limit: int) -> list[dict]:
    """The texts with the most errors, ``limit`` at most; among equals those whose wrong predictions are most certain:
    dicts with ``where``, ``text`` and ``errors``, dicts with ``kind``, ``gold`` and ``predicted``, each None or a dict
    with ``start``, ``end``, ``type``, ``text`` and, if predicted, ``score``."""
    rows = []
    for example, entities in zip(examples, predicted):
        errors = [match for match in match_entities(example.entities, entities) if match.kind != "correct"]
        if errors:
            highest = max((match.predicted.score for match in errors if match.predicted), default=0)
            told = [
                {"kind": kind, "gold": _described(gold, example), "predicted": _described(found, example)}
                for kind, gold, found in errors
            ]
            rows.append((-len(errors), -highest, {"where": example.where, "text": example.text, "errors": told}))
    return [row for *_, row in sorted(rows, key=lambda row: row[:2])[:limit]]


def _described(entity, example):
    if entity is None:
        return None
    score = {} if entity.score is None else {"score": round(entity.score, 4)}
    return {"start": entity.start, "end": entity.end, "type": entity.type, "text": example.surface(entity), **score}
