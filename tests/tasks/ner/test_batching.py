"""From examples to padded batches."""

import numpy as np
import pytest

from paddle_rope.roformer import CharTokenizer
from tasks.common.errors import InputError
from tasks.ner.batching import NerDataset, SpanCollator
from tasks.ner.examples import Entity, Example, TokenizedText, align_entities

OFFSETS = [(0, 0), (0, 1), (1, 3), (4, 5), (0, 0)]  # special, one character, two, a gap, one, special
TEXTS = [
    TokenizedText([2, 7, 8, 9, 3], [(0, 0), (0, 1), (1, 2), (2, 3), (0, 0)], [(1, 1, 3), (0, 2, 2)]),
    TokenizedText([2, 6, 3], [(0, 0), (0, 1), (0, 0)], []),
]


@pytest.mark.parametrize(
    "start, end, tokens",
    [(0, 1, (1, 1)), (0, 3, (1, 2)), (1, 5, (2, 3)), (2, 3, None), (0, 2, None), (3, 5, None), (0, 4, None)]
    + [(0, 0, None)],
)
def test_an_entity_has_a_first_and_a_last_token_unless_it_cuts_one_or_ends_in_a_gap(start, end, tokens):
    entity = Entity(start, end, "a")
    assert align_entities([entity], OFFSETS) == (([(entity, *tokens)], []) if tokens else ([], [entity]))


def dataset(text, entities, types=("org", "place"), **options):
    tokenizer = CharTokenizer.from_corpus(["去北京大学cafe店"])
    example = Example(text, tuple(Entity(*entity) for entity in entities), "x:3")
    return NerDataset([example], tokenizer, types, **options)


def test_a_dataset_numbers_types_in_their_order_and_keeps_nested_entities():
    made = dataset("北京大学", [(0, 2, "place"), (0, 4, "org")], max_characters=4)
    assert (sorted(made[0].spans), made.unaligned, made.lengths) == ([(0, 1, 4), (1, 1, 2)], [], [6])


def test_a_dataset_counts_what_the_model_cannot_find():
    made = dataset("cafe\u0301店", [(0, 4, "org"), (5, 6, "org")])
    assert made.unaligned == [(made.examples[0], Entity(0, 4, "org"))] and len(made[0].spans) == 1
    made = dataset("北京大学", [(0, 2, "org"), (0, 3, "org"), (0, 4, "org")], max_span_length=3)
    assert made.too_long == [(made.examples[0], Entity(0, 4, "org"))] and made[0].spans == [(0, 1, 2), (0, 1, 3)]


def test_an_unknown_type_is_an_error_with_its_place_and_the_known_types():
    with pytest.raises(InputError, match="^x:3: .*'loc'.* org, place"):
        dataset("北京", [(0, 2, "loc")])


def test_a_batch_is_padded_to_its_longest_text():
    batch = SpanCollator(pad_token_id=99)(TEXTS)
    assert batch["input_ids"].dtype == batch["labels"].dtype == np.int64
    assert {name: array.tolist() for name, array in batch.items()} == {
        "input_ids": [[2, 7, 8, 9, 3], [2, 6, 3, 99, 99]],
        "attention_mask": [[True] * 5, [True, True, True, False, False]],
        "token_mask": [[False, True, True, True, False], [False, True, False, False, False]],
        "labels": [[[1, 1, 3], [0, 2, 2]], [[-1, -1, -1]] * 2],
    }
    assert SpanCollator(0)(TEXTS[1:])["labels"].tolist() == [[[-1, -1, -1]]]  # at least one row
    assert SpanCollator(0, with_labels=False)(TEXTS).keys() == {"input_ids", "attention_mask", "token_mask"}
