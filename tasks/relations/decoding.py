"""From the scores of three heads to triples: a relation from one entity, its head, to another, its tail.

A relation p holds between the spans (i, j) and (k, l) if both are entities, ``starts[p, i, k]`` is above the threshold
of p, and so is ``ends[p, j, l]``; the smaller one of these two scores is the score of the triple. Source: GPLinker, Su,
https://kexue.fm/archives/8888.

The work on a window is linear in its scores, whatever they are: of its entities, the ``PER_TOKEN`` highest-scoring ones
for each token are paired, and of these pairs, the candidates whose starts are related, as many are looked at, by
falling score of their starts.

In a text that is read in several windows, a triple is treated as an entity that reaches from the first character of its
two entities to the last: the window with the most text around it decides
(:mod:`paddle_rope.tasks.ner.prediction.finding`). So entities that no window contains together are never related.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from paddle_rope.global_pointer.decoding import MASKED_LOGIT, ScoredSpan, decode_spans
from paddle_rope.tasks.ner.arguments import of_types, probability
from paddle_rope.tasks.ner.examples import Entity, Example, as_record
from paddle_rope.tasks.ner.prediction.finding import Bounds, Decoding, decoded, merge_windows

PER_TOKEN = 4  # entities that are paired, and pairs that are candidates; entities are about one in four tokens
LEAST = 0.99 * MASKED_LOGIT  # of a pair that is not masked
Span = tuple[int, int, str]


class Triple(NamedTuple):
    """A relation between two entities. Its first five members mean what they mean in an :class:`Entity`, with entities
    in place of characters, so what counts entities or fits thresholds to them also takes triples."""

    head: Span  # start, end and type of the entity
    tail: Span
    type: str
    score: float = None  # type: ignore[assignment]  # logit of a predicted one
    probability: float = None  # type: ignore[assignment]  # that it is right

    @property
    def start(self) -> int:
        """First character of the two entities."""
        return min(self.head[0], self.tail[0])

    @property
    def end(self) -> int:
        """Character after the last one of the two entities."""
        return max(self.head[1], self.tail[1])

    def surface(self, text: str, most: int | None = None) -> str:
        """The characters of both entities, of each at most so many."""
        return " → ".join(Entity(*one).surface(text, most) for one in (self.head, self.tail))


class Related(NamedTuple):
    """What a text has: its entities and triples, both ordered."""

    entities: list[Entity]
    triples: list[Triple]


class ScoredPair(NamedTuple):
    """Two related spans, by their places in a list of spans, the number of the relation, and its logit."""

    head: int
    tail: int
    type: int
    score: float


class LinkedSpans(list):
    """The :class:`ScoredSpan` of a text, with the :class:`ScoredPair` of related ones as ``pairs``."""

    def __init__(self, spans: Iterable[ScoredSpan], pairs: list[ScoredPair]):
        super().__init__(spans)
        self.pairs = pairs


def linked_spans(
    config: Any,
    logits: Any,
    thresholds: float | Sequence[float],
    most: int | None,
    sizes: Iterable[int],
    scored: Callable[[int, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> list[LinkedSpans]:
    """The linked spans of each text of a batch.

    Args:
        config: of the model, with the thresholds of relations.
        logits, thresholds, most: of entities, as for :func:`~paddle_rope.global_pointer.decoding.decode_spans`.
        sizes: number of tokens of each text, without padding.
        scored: returns for a text, by its number in the batch, the logits ``[relations, tokens, tokens]`` between some
            first tokens and between some last tokens of spans.
    """
    spans = decode_spans(logits, thresholds, config.max_span_length is not None, most)
    bounds = of_types(config.relation_thresholds, len(config.relations))
    return [link_spans(one, size, partial(scored, text), bounds) for text, (one, size) in enumerate(zip(spans, sizes))]


def all_scored(starts: np.ndarray, ends: np.ndarray) -> Callable[[int, np.ndarray, np.ndarray], Any]:
    """``scored`` of :func:`linked_spans` from all logits ``[batch, relations, seq, seq]`` of the two heads."""
    return lambda text, first, last: (starts[text][:, first[:, None], first], ends[text][:, last[:, None], last])


def link_spans(
    spans: list[ScoredSpan],
    size: int,
    scored: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    thresholds: float | Sequence[float],
) -> LinkedSpans:
    """The spans of a text of ``size`` tokens, linked: see :func:`linked_spans`; ``thresholds`` are of the relations."""
    if not spans:
        return LinkedSpans([], [])
    first, end, _, score = (np.array(column) for column in zip(*spans))
    most = PER_TOKEN * int(size)
    paired = np.argsort(-score, kind="stable")[:most]
    paired = paired[np.argsort(first[paired], kind="stable")]  # those with the same first token are neighbors
    tokens, place, count = np.unique(first[paired], return_index=True, return_counts=True)
    lasts, last = np.unique(end[paired] - 1, return_inverse=True)
    of_starts, of_ends = scored(tokens, lasts)
    bounds = np.maximum(of_types(thresholds, len(of_starts)), LEAST)
    kind, head, tail = np.nonzero(of_starts > bounds[:, None, None])  # of tokens
    order = np.argsort(-of_starts[kind, head, tail], kind="stable")
    order = order[np.cumsum((count[head] * count[tail])[order]) <= most]
    kind, head, tail = kind[order], head[order], tail[order]
    sizes = count[head] * count[tail]  # every entity with the first token of the head, with every one of the tail
    row = np.repeat(np.arange(len(sizes)), sizes)
    number = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kind, head, tail = kind[row], head[row], tail[row]
    heads, tails = place[head] + number // count[tail], place[tail] + number % count[tail]
    found = np.minimum(of_starts[kind, head, tail], of_ends[kind, last[heads], last[tails]])
    columns = (column[found > bounds[kind]].tolist() for column in (paired[heads], paired[tails], kind, found))
    return LinkedSpans(spans, sorted(map(ScoredPair._make, zip(*columns))))


# ---- from windows to texts


def _decoded(config: Any, offsets: list, spans: LinkedSpans, max_entity_tokens: int | None) -> Related:
    temperatures = of_types(config.relation_temperatures, len(config.relations))
    of_span = [(offsets[one.start][0], offsets[one.end - 1][1], config.types[one.type]) for one in spans]
    triples = [
        Triple(of_span[head], of_span[tail], config.relations[kind], score, probability(score, temperatures[kind]))
        for head, tail, kind, score in spans.pairs
    ]
    return Related(decoded(config, offsets, spans, max_entity_tokens), triples)


def _merged(bounds: Sequence[Bounds], found: Sequence[Related]) -> Related:
    entities, triples = zip(*found)
    return Related(merge_windows(bounds, entities), merge_windows(bounds, triples))


RELATED = Decoding(_decoded, _merged)


def between(entities: list[Entity], triples: Iterable[Triple]) -> Related:
    """Entities, with the triples whose two entities are among them."""
    known = {entity[:3] for entity in entities}
    return Related(entities, [one for one in triples if one.head in known and one.tail in known])


def triples_of(example: Example) -> list[Triple]:
    """The gold triples of an example."""
    spans = [entity[:3] for entity in example.entities]
    return [Triple(spans[head], spans[tail], kind) for head, tail, kind in example.relations]


def related_record(text: str, found: Related) -> dict:
    """A prediction as a dict: see :class:`paddle_rope.tasks.relations.prediction.RelationsPredictor`."""
    number = {entity[:3]: place for place, entity in enumerate(found.entities)}
    relations = [
        {"head": number[one.head], "tail": number[one.tail], "type": one.type}
        | {"score": round(one.score, 4), "probability": round(one.probability, 4)}
        for one in found.triples
    ]
    return {**as_record(text, found.entities), "relations": relations}
