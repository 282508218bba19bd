"""Tokens of documents, pieces, rows, and what is hidden in words."""

import numpy as np
import pytest

from paddle_rope.roformer import CharTokenizer, WordTokenizer
from paddle_rope.roformer.heads import IGNORED_LABEL
from paddle_rope.roformer.tokenization.word_tokenizer import jieba_cutter
from tasks.pretraining.batches import WholeWordMasking
from tasks.pretraining.packing import (
    CLS,
    PAD,
    PADDING_SEGMENT,
    SEP,
    PackedRows,
    TokenStream,
    cut_documents,
    pack,
    starts_of_words,
    tokenize,
)

TEXT = "北京大学的学生2024年学习Python 语言处理，\n我们不喜欢蛤蟆镜。"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


# ---- tokens


@pytest.mark.parametrize("kind", [CharTokenizer, WordTokenizer])
def test_words_begin_where_jieba_cuts(kind, word_vocab_file):
    is_char = kind is CharTokenizer
    tokens = CharTokenizer.from_corpus([TEXT]) if is_char else WordTokenizer.from_vocab_file(word_vocab_file)
    encoding = tokens.encode(TEXT, add_special_tokens=False)
    starts = starts_of_words(TEXT, encoding.offsets)
    cuts = np.cumsum([0, *(len(word) for word in jieba_cutter().cut(TEXT, HMM=False))])
    word_of = np.searchsorted(cuts, [start for start, _ in encoding.offsets], side="right")
    assert starts.tolist() == [True, *(a != b for a, b in zip(word_of, word_of[1:]))]
    # the words of both are the same, however many tokens they have
    words = [TEXT[encoding.offsets[at][0] :] for at in np.flatnonzero(starts)]
    assert any(word.startswith("Python") for word in words) and any(word.startswith("蛤") for word in words)


def test_stream_holds_the_documents_one_behind_the_other():
    tokenizer = CharTokenizer([*SPECIAL, *"北京大学我们习，"])
    stream = tokenize(["北京大学", "  ", "我们学习，", ""], tokenizer, "", show_progress=False)
    assert stream.bounds.tolist() == [0, 4, 9]  # without [SPACE] a blank text has no token
    assert tokenizer.decode(stream.ids) == "北京大学我们学习，" and stream.word_starts[[0, 4]].all()
    assert (stream.ids.dtype, stream.word_starts.dtype, stream.bounds.dtype) == (np.int32, bool, np.int64)
    stream = tokenize([], tokenizer, "", show_progress=False)
    assert len(stream.ids) == len(stream.word_starts) == 0 and stream.bounds.tolist() == [0]


# ---- pieces and rows


def make_stream(document_sizes, word_size):
    """Tokens 0, 1, 2, ... in words of one size."""
    bounds = np.cumsum([0, *document_sizes])
    starts = np.arange(bounds[-1]) % word_size == 0
    starts[bounds[:-1]] = True
    return TokenStream(np.arange(bounds[-1], dtype=np.int32), starts, bounds)


@pytest.mark.parametrize("sizes, word_size, pieces", [
    ([20], 4, [[0, 8], [8, 16], [16, 20]]),  # as long as fits before a word
    ([3, 25], 100, [[0, 3], [3, 13], [13, 23], [23, 28]]),  # a word longer than a row
])  # fmt: skip
def test_pieces_are_as_long_as_fits(sizes, word_size, pieces):
    assert cut_documents(make_stream(sizes, word_size), 10).tolist() == pieces


def test_rows_are_full_but_for_a_hundredth_and_pieces_of_one_length_come_together_as_drawn():
    random = np.random.default_rng(1)
    sizes = random.integers(3, 129, 3000)
    filled = np.bincount(pack(sizes, 128, random), weights=sizes)
    assert 0 < filled.min() <= filled.max() <= 128 and sizes.sum() / (128 * len(filled)) > 0.99
    first, again, other = (pack(np.repeat([10, 30], 20), 40, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert np.array_equal(np.bincount(first), np.full(20, 2))


@pytest.mark.parametrize("length", [8, 33, 64, 400, 5000])
def test_rows_hold_every_token_once_in_pieces_of_one_document_between_special_tokens(sample, length):
    stream = sample.stream
    rows = PackedRows(stream, length, np.random.default_rng(0))
    seen = []
    for part in np.array_split(np.random.default_rng(0).permutation(len(rows)), max(1, len(rows) // 5)):
        layout = rows.lay_out(part)
        assert {array.shape for array in layout} == {(len(part), length)}
        assert np.array_equal(layout.source == PAD, layout.segment_ids == PADDING_SEGMENT)
        seen.append(layout.source[layout.is_text])
        for row, positions, segments in zip(*layout):
            numbers = segments[segments != PADDING_SEGMENT]
            assert (segments[len(numbers) :] == PADDING_SEGMENT).all()  # padding is at the end
            assert (np.diff(numbers) >= 0).all() and len(numbers) > 0  # side by side
            for number in np.unique(numbers):
                inside = segments == number
                assert positions[inside].tolist() == list(range(inside.sum()))
                cls, *text, sep = row[inside].tolist()
                assert (cls, sep) == (CLS, SEP) and text == list(range(text[0], text[0] + len(text)))
                first, last = np.searchsorted(stream.bounds, [text[0], text[-1]], side="right")
                assert first == last
    assert np.array_equal(np.sort(np.concatenate(seen)), np.arange(len(stream.ids)))


# ---- hiding

COUNT = 60_000


@pytest.fixture(scope="module")
def masking():
    return WholeWordMasking(CharTokenizer([*SPECIAL, *"一二三四五六七八九十"]))


@pytest.fixture(scope="module")
def hidden(masking):
    """Many tokens in words of 1 to 4, and what becomes of them."""
    random = np.random.default_rng(3)
    ids = random.integers(5, 15, COUNT).astype(np.int32)
    starts = np.zeros(COUNT, dtype=bool)
    places = np.cumsum([0, *random.integers(1, 5, COUNT)])
    starts[places[places < COUNT]] = True
    return ids, starts, *masking.hide(ids, starts, np.random.default_rng(5))


def test_fifteen_in_a_hundred_words_are_hidden_as_a_whole_long_ones_as_often_as_short_ones(hidden):
    ids, starts, _, labels = hidden
    is_hidden = labels != IGNORED_LABEL
    assert is_hidden.mean() == pytest.approx(0.15, abs=0.005)
    assert np.array_equal(labels[is_hidden], ids[is_hidden])
    words = np.cumsum(starts) - 1
    share = np.bincount(words, weights=is_hidden) / np.bincount(words)
    assert set(share.tolist()) == {0.0, 1.0}
    for size in (1, 2, 3, 4):
        assert share[np.bincount(words) == size].mean() == pytest.approx(0.15, abs=0.02)


def test_hidden_tokens_become_mask_another_or_stay_as_the_generator_draws(hidden, masking):
    ids, starts, inputs, labels = hidden
    is_hidden = labels != IGNORED_LABEL
    assert np.array_equal(inputs[~is_hidden], ids[~is_hidden])
    now, before = inputs[is_hidden], labels[is_hidden]
    assert np.mean(now == masking.mask_token_id) == pytest.approx(0.8, abs=0.02)
    # a random token is the same by chance once in ten
    assert np.mean(now == before) == pytest.approx(0.1 + 0.1 / 10, abs=0.02)
    assert set(now[(now != masking.mask_token_id) & (now != before)].tolist()) == set(range(5, 15))
    again, other = (masking.hide(ids, starts, np.random.default_rng(seed)) for seed in (5, 6))
    assert np.array_equal(again, [inputs, labels]) and not np.array_equal(other[1], labels)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_even_the_shortest_text_has_something_to_predict(masking, size):
    starts = np.arange(size) == 0
    _, labels = masking.hide(np.full(size, 7, dtype=np.int32), starts, np.random.default_rng(0))
    assert (labels == 7).all()
