"""Precision, recall and F1 of entities, kinds of errors, and precision-recall curves.

In each text, every gold and every predicted entity is assigned one kind, by these rules in this order. Where several
pairs are possible, the one with the larger overlap (shared characters over all characters of both) is taken first, then
the one with the lower offsets; an entity is in at most one pair.

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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple, Optional

import numpy as np

from paddle_rope.tasks.common.reports.tables import confusions_of, f1_row
from paddle_rope.tasks.ner.examples import Entity, Example, Found, spans_of

KINDS = ("correct", "type", "boundary", "both", "missed", "spurious")
BOUNDARY_ERRORS = ("too_long", "too_short", "crossing")
# Lengths in characters, first and last.
LENGTHS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 9), (10, 14), (15, 24), (25, None))


def entity_scores(examples: list[Example], found: Found, types: Iterable[str]) -> dict:
    """Corpus micro scores over exact (start, end, type) of the entities found in each example: counts are summed
    over all texts before dividing. A quotient 0/0 counts as 0. dict with ``precision``, ``recall``, ``f1``, ``support``
    (gold entities), ``predicted``, ``correct``, and ``per_type`` with the same for each of ``types``."""
    counts = _counts_by(examples, found, lambda _: lambda span: span[2])
    scores = f1_row(*map(sum, zip((0, 0, 0), *counts.values())))
    scores["per_type"] = {kind: f1_row(*counts[kind]) for kind in types}
    return scores


def _counts_by(
    examples: list[Example], found: Found, group_of: Callable[[Example], Callable[[tuple], str]]
) -> dict[str, list[int]]:
    """Numbers of gold, predicted and correct entities of each group, 0 for other groups. ``group_of(example)`` is a
    function from (start, end, type) to a group."""
    counts: dict = defaultdict(lambda: [0, 0, 0])
    for example, entities in zip(examples, found):
        gold, predicted, group = example.spans, spans_of(entities), group_of(example)
        for column, spans in enumerate((gold, predicted, gold & predicted)):
            for span in spans:
                counts[group(span)][column] += 1
    return counts


# ---- kinds of errors


class Match(NamedTuple):
    """A gold and a predicted entity that belong together, or one without the other."""

    kind: str  # one of KINDS, with one of BOUNDARY_ERRORS in place of boundary
    gold: Optional[Entity]
    predicted: Optional[Entity]


def match_entities(gold: Iterable[Entity], predicted: Iterable[Entity]) -> list[Match]:
    """Match the gold and the predicted entities of one text; the matches are ordered by offsets."""
    gold, predicted = ({entity[:3]: entity for entity in entities} for entities in (gold, predicted))
    matches = [Match("correct", gold.pop(span), predicted.pop(span)) for span in gold.keys() & predicted.keys()]
    ordered = sorted(predicted.values())
    starts, longest = [found.start for found in ordered], max((one.end - one.start for one in ordered), default=0)
    candidates = []
    for wanted in gold.values():  # a long text has thousands: only what may overlap is compared
        near = slice(bisect.bisect_right(starts, wanted.start - longest), bisect.bisect_left(starts, wanted.end))
        for found in ordered[near]:
            overlap = min(wanted.end, found.end) - max(wanted.start, found.start)
            if overlap <= 0:
                continue
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


def scores_and_errors(examples: list[Example], found: Found, types: Iterable[str]) -> dict:
    """:func:`entity_scores` and :func:`error_analysis` of predictions, in one dict."""
    return {**entity_scores(examples, found, types), **error_analysis(examples, found)}


def error_analysis(examples: list[Example], found: Found) -> dict:
    """Error counts of a corpus, from labeled examples and the entities found in each: a dict with

    * ``errors``: how often each of ``KINDS`` and each of ``BOUNDARY_ERRORS`` occurs;
    * ``confusions``: ``gold``, ``predicted`` and ``count`` of types with the same boundaries, the most frequent first;
    * ``by_length``: rows with ``from``, ``to`` (None: no end) and the scores of entities of that many characters;
    * ``by_nesting``: scores of ``nested`` entities, which share a character with two or more gold entities, including
      themselves, and of ``flat`` ones; None if no gold entity is nested.
    """
    matches = [match for one, entities in zip(examples, found) for match in match_entities(one.entities, entities)]
    lengths = _counts_by(examples, found, lambda _: _length_class)
    nesting = _counts_by(examples, found, _nesting_of)
    counts = Counter(match.kind for match in matches)
    counts["boundary"] = sum(counts[kind] for kind in BOUNDARY_ERRORS)
    confused = Counter((match.gold.type, match.predicted.type) for match in matches if match.kind == "type")
    return {
        "errors": {kind: counts[kind] for kind in (*KINDS, *BOUNDARY_ERRORS)},
        "confusions": confusions_of(confused),
        "by_length": [{"from": one[0], "to": one[1], **f1_row(*lengths[one])} for one in LENGTHS if one in lengths],
        "by_nesting": {name: f1_row(*nesting[name]) for name in ("nested", "flat")} if nesting["nested"][0] else None,
    }


def _length_class(span):
    return next((first, last) for first, last in LENGTHS if last is None or span[1] - span[0] <= last)


def _nesting_of(example):
    starts, ends = (sorted(entity[side] for entity in example.entities) for side in (0, 1))

    def nesting(span):
        overlapping = bisect.bisect_left(starts, span[1]) - bisect.bisect_right(ends, span[0])
        return "nested" if overlapping > 1 else "flat"

    return nesting


def match_in_example(example: Example, found: Iterable[Entity]) -> list[Match]:
    """:func:`match_entities` of an example's gold entities."""
    return match_entities(example.entities, found)


def worst_examples(
    examples: list[Example], predicted: list, limit: int, match: Callable[..., list[Match]] = match_in_example
) -> list[dict]:
    """At most ``limit`` texts with the most errors, among equals the ones with the highest-scoring wrong prediction
    first: dicts with ``where``, ``text`` and ``errors``, a list of dicts with ``kind``, ``gold`` and ``predicted``; the
    last two are None or a dict with ``start``, ``end``, ``type``, ``text`` and, if predicted, ``score``. ``match`` is
    called with an example and what is found in it."""
    rows = []
    for example, found in zip(examples, predicted):
        errors = [one for one in match(example, found) if one.kind != "correct"]
        if errors:
            highest = max((one.predicted.score for one in errors if one.predicted), default=0)
            told = [
                {"kind": kind, "gold": _described(gold, example), "predicted": _described(other, example)}
                for kind, gold, other in errors
            ]
            rows.append((-len(errors), -highest, {"where": example.where, "text": example.text, "errors": told}))
    return [row for *_, row in sorted(rows, key=lambda row: row[:2])[:limit]]


def _described(entity, example):
    if entity is None:
        return None
    score = {} if entity.score is None else {"score": round(entity.score, 4)}
    return {"start": entity.start, "end": entity.end, "type": entity.type, "text": example.surface(entity), **score}


# ---- curves


def scored_by_type(
    examples: list[Example], found: Found, types: Iterable[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each type, the scores of the entities found, float64, and whether each is right, bool."""
    scored: dict = {kind: ([], []) for kind in types}
    for gold, entities in zip((example.spans for example in examples), found):
        for entity in entities:
            scores, labels = scored[entity.type]
            scores.append(entity.score)
            labels.append(entity[:3] in gold)
    return {kind: (np.array(scores, float), np.array(labels, bool)) for kind, (scores, labels) in scored.items()}


def precision_recall_curves(
    examples: list[Example], candidates: Found, types: Iterable[str], steps: int
) -> dict[str, dict]:
    """Precision and recall of each type for the thresholds 1 / ``steps``, 2 / ``steps``, ... 1 on the probability
    sigmoid(score). A span is predicted above, not at, the threshold, so one half means the logit 0. ``candidates`` has,
    for each text, all spans with a probability above 1 / ``steps``; other gold entities are always missed.

    A dict from a type to a dict of float arrays ``[steps]``: ``precision`` (if nothing is predicted, the precision at
    the highest threshold with a prediction, so that a curve does not end in a jump to 1; else 0) and ``recall`` (0 if
    nothing is gold), and int arrays ``tp``, ``fp``, ``fn`` and ``tn``, which counts only candidates.
    """
    probability = np.arange(1, steps) / steps
    thresholds = np.append(np.log(probability / (1 - probability)), np.inf)
    support = Counter(kind for example in examples for _, _, kind in example.spans)
    scored = scored_by_type(examples, candidates, types)
    return {kind: _curve(*of_type, support[kind], thresholds) for kind, of_type in scored.items()}


def _curve(scores, labels, support, thresholds):
    wrong, right = scores[~labels], scores[labels]
    # how many are above each of the rising thresholds
    fp, tp = (len(some) - np.searchsorted(np.sort(some), thresholds, side="right") for some in (wrong, right))
    predicted = tp + fp  # falls with the threshold
    precision = tp / np.maximum(predicted, 1)
    highest = np.count_nonzero(predicted) - 1
    precision[highest + 1 :] = precision[highest] if highest >= 0 else 0.0
    counts = {"tp": tp, "fp": fp, "fn": support - tp, "tn": (~labels).sum() - fp}
    return {"precision": precision, "recall": tp / max(support, 1), **counts}
