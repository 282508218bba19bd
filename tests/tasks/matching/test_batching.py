"""Sequences of tokens: what is in them, what is cut, and in which order they are batched."""

import numpy as np
import pytest

from paddle_rope.roformer import CharTokenizer
from tasks.matching.batching import MatchingDataset, pad_items
from tasks.matching.data import Example
from tasks.matching.model import MatchingConfig

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def tokenizer():
    return CharTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[SPACE]", *LETTERS])


def dataset(tokenizer, tuples, max_tokens=None, **options):
    config = MatchingConfig(**{"vocab_size": len(tokenizer), "hidden_size": 8, "num_attention_heads": 2, **options})
    return MatchingDataset([Example(texts, 1.0, "") for texts in tuples], tokenizer, config, max_tokens)


def shown(tokenizer, sequence):
    """Tokens, special ones as their initials."""
    return "".join(tokenizer.vocab[index].strip("[]")[0] for index in sequence.ids)


def test_cross_encoder_reads_two_texts_as_one_sequence_with_types_on_demand(tokenizer):
    data = dataset(tokenizer, [("ab", "xyz")], token_type_ids=True, type_vocab_size=2)
    assert shown(tokenizer, data.sequences[0]) == "CabSxyzS"
    assert data.sequences[0].token_type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    data = dataset(tokenizer, [("ab", "xyz")], type_vocab_size=2)
    assert data.sequences[0].token_type_ids is None
    assert "token_type_ids" not in pad_items([data[0]], 0)


@pytest.mark.parametrize(
    "texts, expected",
    [
        (("abcdefgh", "rstuvwxy"), "CabcdSrstS"),  # each has half; the odd token is the first text's
        (("abcdefgh", "rs"), "CabcdeSrsS"),  # what a short one leaves is the other's
        (("a", "rstuvwxy"), "CaSrstuvwS"),
        (("abcd", "rst"), "CabcdSrstS"),
    ],
)
def test_of_two_texts_in_a_sequence_each_has_a_fair_share(tokenizer, texts, expected):
    data = dataset(tokenizer, [texts], max_tokens=10)
    assert shown(tokenizer, data.sequences[0]) == expected
    assert data.num_cut == (sum(map(len, texts)) > 7)


def test_bi_encoder_gives_each_text_the_whole_length(tokenizer):
    data = dataset(tokenizer, [("abcdefgh", "rs")], max_tokens=7, architecture="bi_encoder")
    assert [shown(tokenizer, sequence) for sequence in data.sequences] == ["CabcdeS", "CrsS"]
    assert data.num_cut == 1 and data.lengths == [7]


def test_sequences_in_common_are_kept_once(tokenizer):
    tuples = [("ab", "c", "d"), ("ab", "d", "c"), ("c", "ab", "ab")]
    data = dataset(tokenizer, tuples, architecture="bi_encoder", task="triples")
    assert [shown(tokenizer, sequence) for sequence in data.sequences] == ["CabS", "CcS", "CdS"]
    assert data.rows.tolist() == [[0, 1, 2], [0, 2, 1], [1, 0, 0]]
    assert data.lengths == [4, 4, 4]
    data = dataset(tokenizer, tuples, task="triples")
    assert [shown(tokenizer, s) for s in data.sequences] == ["CabScS", "CabSdS", "CcSabS"]
    assert data.rows.tolist() == [[0, 1], [1, 0], [2, 2]]


def test_batches_have_the_first_sequences_of_all_items_first_and_are_padded(tokenizer):
    data = dataset(tokenizer, [("a", "bcd"), ("ef", "g")], architecture="bi_encoder")
    batch = pad_items([data[0], data[1]], tokenizer.pad_token_id)
    rows = ["".join(tokenizer.vocab[i].strip("[]")[0] for i in row) for row in batch["input_ids"]]
    assert rows == ["CaSPP", "CefSP", "CbcdS", "CgSPP"]
    assert batch["attention_mask"].tolist() == [[token != "P" for token in row] for row in rows]
    assert batch["labels"].dtype == np.float32 and batch["labels"].tolist() == [1, 1]
