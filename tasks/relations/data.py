"""Examples with relations -> tokens -> padded batches."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from paddle_rope.tasks.common.inference import pad
from paddle_rope.tasks.ner.batching import NerDataset, pad_spans
from paddle_rope.tasks.ner.examples import Example


def relation_types(examples: Iterable[Example]) -> list[str]:
    """The sorted distinct names of the relations of examples."""
    return sorted({relation.type for example in examples for relation in example.relations})


class RelationsDataset(NerDataset):
    """A :class:`~paddle_rope.tasks.ner.batching.NerDataset` whose texts also have pairs of related entities. Relations
    are numbered in the order of ``relations``. A relation is not learned if it is not among them, or if one of its
    entities is no sequence of tokens."""

    def __init__(self, examples, tokenizer, types, relations, **options):
        self._number = {name: index for index, name in enumerate(relations)}
        super().__init__(examples, tokenizer, types, **options)
        self.collate = functools.partial(pad_related, pad_token_id=tokenizer.pad_token_id)

    def _pairs(self, example, aligned):
        tokens = {entity: bounds for entity, *bounds in aligned}
        ends = ((one.type, example.entities[one.head], example.entities[one.tail]) for one in example.relations)
        return tuple(
            (self._number[kind], *tokens[head], *tokens[tail])
            for kind, head, tail in ends
            if kind in self._number and head in tokens and tail in tokens
        )


def pad_related(texts, pad_token_id):
    """The inputs of :class:`~paddle_rope.tasks.relations.model.RelationsModel` in training:
    :func:`~paddle_rope.tasks.ner.batching.pad_spans`, and ``pairs`` int64 ``[batch, relations, 5]``, padded with -1."""
    pairs = [np.reshape(text.pairs, (-1, 5)) for text in texts]
    return {**pad_spans(texts, pad_token_id), "pairs": pad(pairs, np.int64, -1, least=1)}
