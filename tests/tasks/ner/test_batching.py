"""From examples to padded batches."""

import numpy as np
import pytest

from paddle_rope.roformer import CharTokenizer
from tasks.common.errors import InputError
from tasks.ner.batching import NerDataset, SpanCollator, TokenizedText
from tasks.ner.examples import Entity, Example, align_entities

OFFSETS = [(0, 0), (0, 1), (1, 3), (4, 5), (0, 0)]  # special, one character, two, a gap, one, special


@pytest.fixture
def tokenizer():
    return CharTokenizer.from_corpus(["去北京大学cafe店"])


def test_entities_map_to_their_first_and_last_token():
    entities = [Entity(0, 1, "a"), Entity(0, 3, "b"), Entity(1, 5, "a")]
    aligned, unaligned = align_entities(entities, OFFSETS)
    assert aligned == [(entities[0], 1, 1), (entities[1], 1, 2), (entities[2], 2, 3)]
    assert unaligned == []


@pytest.mark.parametrize("entity", [Entity(2, 3, "a"), Entity(0, 2, "a"), Entity(3, 5, "a"), Entity(0, 4, "a")])
def test_entities_that_cut_a_token_or_end_in_a_gap_are_returned_as_unaligned(entity):
    assert align_entities([entity], OFFSETS) == ([], [entity])


def test_special_tokens_hold_no_entity():
    assert align_entities([Entity(0, 0, "a")], [(0, 0), (0, 0)])[0] == []


def test_dataset_numbers_types_in_the_given_order_and_keeps_nested_entities(tokenizer):
    example = Example("北京大学", (Entity(0, 2, "place"), Entity(0, 4, "org")), "x:1")
    dataset = NerDataset([example], tokenizer, ["org", "place"], max_characters=4)
    assert len(dataset) == 1
    assert sorted(dataset[0].spans) == [(0, 1, 4), (1, 1, 2)]  # after [CLS]
    assert dataset.unaligned == []


def test_dataset_counts_gold_entities_that_no_token_boundary_fits(tokenizer):
    example = Example("cafe\u0301店", (Entity(0, 4, "org"), Entity(5, 6, "org")), "x:1")
    dataset = NerDataset([example], tokenizer, ["org"], max_characters=9)
    assert dataset.unaligned == [(example, Entity(0, 4, "org"))]
    assert len(dataset[0].spans) == 1


def test_dataset_counts_gold_entities_that_are_longer_than_the_band(tokenizer):
    entities = (Entity(0, 2, "org"), Entity(0, 3, "org"), Entity(0, 4, "org"))
    example = Example("北京大学", entities, "x:1")
    dataset = NerDataset([example], tokenizer, ["org"], max_characters=4, max_span_length=3)
    assert dataset.too_long == [(example, entities[2])] and dataset.unaligned == []
    assert dataset[0].spans == [(0, 1, 2), (0, 1, 3)]


def test_unknown_type_is_an_error_with_its_place_and_the_known_types(tokenizer):
    example = Example("北京", (Entity(0, 2, "loc"),), "x:3")
    with pytest.raises(InputError, match="^x:3: entity type 'loc' is unknown to the model, which knows org, place; "):
        NerDataset([example], tokenizer, ["org", "place"], max_characters=9)


@pytest.fixture
def texts():
    first = TokenizedText([2, 7, 8, 9, 3], [(0, 0), (0, 1), (1, 2), (2, 3), (0, 0)], [(1, 1, 3), (0, 2, 2)])
    second = TokenizedText([2, 6, 3], [(0, 0), (0, 1), (0, 0)], [])
    return [first, second]


def test_collator_pads_to_the_longest_text_and_masks_the_padding(texts):
    batch = SpanCollator(pad_token_id=99)(texts)
    assert batch["input_ids"].dtype == np.int64
    assert batch["input_ids"].tolist() == [[2, 7, 8, 9, 3], [2, 6, 3, 99, 99]]
    assert batch["attention_mask"].tolist() == [[True] * 5, [True, True, True, False, False]]


def test_collator_marks_tokens_that_stand_for_characters(texts):
    mask = SpanCollator(pad_token_id=0)(texts)["token_mask"]
    assert mask.tolist() == [[False, True, True, True, False], [False, True, False, False, False]]


def test_collator_lists_the_spans_of_each_text_and_pads_with_minus_one(texts):
    labels = SpanCollator(pad_token_id=0)(texts)["labels"]
    assert labels.dtype == np.int64
    assert labels.tolist() == [[[1, 1, 3], [0, 2, 2]], [[-1, -1, -1]] * 2]


def test_collator_gives_a_batch_without_entities_one_row_of_padding(texts):
    assert SpanCollator(pad_token_id=0)(texts[1:])["labels"].tolist() == [[[-1, -1, -1]]]


def test_collator_without_labels_gives_the_inputs_alone(texts):
    assert SpanCollator(0, with_labels=False)(texts).keys() == {"input_ids", "attention_mask", "token_mask"}
