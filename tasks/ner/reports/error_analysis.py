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
        first = bisect.bisect_right(self._starts, span.start - self._longest)
        last = bisect.bisect_left(self._starts, span.end)
        return [entity for entity in self._entities[first:last] if entity.end > span.start]


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


def error_analysis(examples: list[Example], predicted: list[list[Entity]]) -> dict:
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
    matches = []
    nesting = {"nested": Counter(), "flat": Counter()}
    lengths = {bounds: Counter() for bounds in LENGTHS}
    for example, found in zip(examples, predicted):
        overlapping = _Overlaps(example.entities)
        of_text = match_entities(example.entities, found)
        matches += of_text
        for match in of_text:
            correct = match.gold if match.kind == "correct" else None
            for side, entity in (("gold", match.gold), ("predicted", match.predicted), ("correct", correct)):
                if entity is not None:
                    length = entity.end - entity.start
                    bounds = next(bounds for bounds in LENGTHS if bounds[1] is None or length <= bounds[1])
                    lengths[bounds][side] += 1
                    nesting["nested" if len(overlapping.with_span(entity)) > 1 else "flat"][side] += 1
    counts = Counter(match.kind for match in matches)
    counts["boundary"] = sum(counts[kind] for kind in BOUNDARY_ERRORS)
    confused = Counter((match.gold.type, match.predicted.type) for match in matches if match.kind == "type")
    return {
        "errors": {kind: counts[kind] for kind in (*KINDS, *BOUNDARY_ERRORS)},
        "confusions": [
            {"gold": gold, "predicted": predicted, "count": count}
            for (gold, predicted), count in sorted(confused.items(), key=lambda item: (-item[1], item[0]))
        ],
        "by_length": [{"from": first, "to": last, **_row(count)} for (first, last), count in lengths.items() if count],
        "by_nesting": {name: _row(count) for name, count in nesting.items()} if nesting["nested"]["gold"] else None,
    }


def worst_examples(examples: list[Example], predicted: list[list[Entity]], limit: int) -> list[dict]:
    """The texts with the most errors, ``limit`` at most; among equals those whose wrong predictions are most certain:
    dicts with ``where``, ``text``, ``number_of_errors``, ``highest_wrong_score`` (None if nothing predicted is wrong)
    and ``errors``, dicts with ``kind``, ``gold`` and ``predicted``, each None or a dict with ``start``, ``end``,
    ``type``, ``text`` and, if predicted, ``score``."""
    found = []
    for example, entities in zip(examples, predicted):
        errors = [match for match in match_entities(example.entities, entities) if match.kind != "correct"]
        highest = max((match.predicted.score for match in errors if match.predicted), default=None)
        if errors:
            found.append((example, errors, highest))
    found.sort(key=lambda item: (-len(item[1]), -(item[2] or 0)))
    return [
        {
            "where": example.where,
            "text": example.text,
            "number_of_errors": len(errors),
            "highest_wrong_score": None if highest is None else round(highest, 4),
            "errors": [
                {
                    "kind": one.kind,
                    "gold": _described(one.gold, example),
                    "predicted": _described(one.predicted, example),
                }
                for one in errors
            ],
        }
        for example, errors, highest in found[:limit]
    ]


def _described(entity, example):
    if entity is None:
        return None
    score = {} if entity.score is None else {"score": round(entity.score, 4)}
    return {"start": entity.start, "end": entity.end, "type": entity.type, "text": example.surface(entity), **score}


def _row(count):
    return f1_row(count["gold"], count["predicted"], count["correct"])
