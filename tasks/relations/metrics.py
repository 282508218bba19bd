"""Precision, recall and F1 of triples, by their spans and types and by their texts; and kinds of errors.

Each gold and each found triple has one kind, by these rules in this order; in the order of their offsets, a triple is
matched at most once.

1. ``correct``: same head, tail and relation; a head and a tail are the same if spans and types are.
2. ``relation``: same head and tail, another relation.
3. ``direction``: same relation, head and tail exchanged.
4. ``entity``: same relation and head, another tail; or the other way round.
5. ``unfound``: a gold triple of which an entity is not found; ``missed``: any other gold triple.
6. ``spurious``: a found triple.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from paddle_rope.tasks.common.reports.tables import f1_row
from paddle_rope.tasks.ner.batching import with_unseen
from paddle_rope.tasks.ner.examples import Example, relation_types
from paddle_rope.tasks.ner.metrics import Match, entity_scores
from paddle_rope.tasks.ner.reports.reliability import reliability
from paddle_rope.tasks.relations.decoding import Related, triples_of

MEANINGS = {
    "relation": "right entities, wrong relation",
    "direction": "head and tail exchanged",
    "entity": "one of the two entities is another one",
    "unfound": "gold, and one of its entities is not found",
    "missed": "gold, and only its entities are found",
    "spurious": "found, and nothing like it is gold",
}
# kind -> what a gold triple and a found one have in common
_ALIKE: tuple = (
    ("correct", lambda one: one[:3], lambda one: one[:3]),
    ("relation", lambda one: one[:2], lambda one: one[:2]),
    ("direction", lambda one: one[:3], lambda one: (one.tail, one.head, one.type)),
    ("entity", lambda one: (one.head, one.type), lambda one: (one.head, one.type)),
    ("entity", lambda one: (one.tail, one.type), lambda one: (one.tail, one.type)),
)


class Gold(NamedTuple):
    """The gold triples of a text, in place of an :class:`Example` for what counts entities."""

    spans: frozenset


def gold_of(examples: Iterable[Example]) -> Any:
    """The :class:`Gold` of each example."""
    return [Gold(frozenset(one[:3] for one in triples_of(example))) for example in examples]


def relation_scores(config: Any, examples: list[Example], found: list[Related]) -> dict:
    """Corpus micro scores of the exact triples that a model with this ``config`` finds, as from
    :func:`~paddle_rope.tasks.ner.metrics.entity_scores`, ``per_type`` by relation; ``by_text``, where a triple is the
    texts of its entities and its relation, counted once in a text, as DuIE counts; the scores of ``entities``;
    ``text_f1`` and ``entity_f1`` of these; ``errors``, how often each kind occurs; and the ``reliability`` of triples.
    Types and relations that the model does not know count as missed."""
    relations = [*config.relations, *sorted({*relation_types(examples)} - {*config.relations})]
    gold, triples = gold_of(examples), [one.triples for one in found]
    counts: Counter = Counter()
    for example, of_text in zip(examples, triples):
        wanted, predicted = (_texts(example.text, some) for some in (triples_of(example), of_text))
        counts.update(support=len(wanted), predicted=len(predicted), correct=len(wanted & predicted))
    by_text = f1_row(counts["support"], counts["predicted"], counts["correct"])
    entities = entity_scores(examples, [one.entities for one in found], with_unseen(config.types, examples))
    kinds = Counter(match.kind for pair in zip(examples, found) for match in match_triples(*pair))
    return {
        **entity_scores(gold, triples, relations),
        **{"by_text": by_text, "entities": entities, "text_f1": by_text["f1"], "entity_f1": entities["f1"]},
        "errors": {kind: kinds[kind] for kind in ("correct", *MEANINGS)},
        "reliability": reliability(gold, triples, config.relations, config.relation_temperatures),
    }


def _texts(text, triples):
    return {(text[slice(*one.head[:2])], one.type, text[slice(*one.tail[:2])]) for one in triples}


def match_triples(example: Example, found: Related) -> list[Match]:
    """Match the gold and the found triples of a text; the matches are ordered by offsets."""
    matches, gold, predicted = [], sorted(triples_of(example)), sorted(found.triples)
    for kind, of_gold, of_predicted in _ALIKE:
        waiting, left = defaultdict(list), []
        for one in reversed(predicted):
            waiting[of_predicted(one)].append(one)
        for one in gold:
            if waiting[of_gold(one)]:
                matches.append(Match(kind, one, waiting[of_gold(one)].pop()))
            else:
                left.append(one)
        gold, predicted = left, sorted(one for others in waiting.values() for one in others)
    known = {entity[:3] for entity in found.entities}
    matches += [Match("missed" if {one.head, one.tail} <= known else "unfound", one, None) for one in gold]
    matches += [Match("spurious", None, one) for one in predicted]
    return sorted(matches, key=lambda match: ((match.gold or match.predicted)[:3], match.kind))
