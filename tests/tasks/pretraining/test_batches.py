"""From texts to batches: tokens, pieces, rows, what is hidden in words; stages and their batches."""

import numpy as np
import pytest

from paddle_rope.roformer import CharTokenizer, WordTokenizer
from paddle_rope.roformer.heads import IGNORED_LABEL
from paddle_rope.roformer.tokenization.word_tokenizer import jieba_cutter
from paddle_rope.tasks.common.training.trainer import InOrder
from paddle_rope.tasks.pretraining.arguments import Stage, parse_stages
from paddle_rope.tasks.pretraining.batches import (
    CLS,
    PAD,
    PADDING_SEGMENT,
    SEP,
    DevBatches,
    PackedRows,
    StageBatches,
    TokenStream,
    WholeWordMasking,
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


def test_rows_are_full_but_for_a_hundredth_and_pieces_of_one_length_stay_as_drawn():
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


def test_a_word_longer_than_a_row_is_hidden_piece_by_piece(sample):
    (batch,) = StageBatches(make_stream([602], 602), [Stage(16, 43, 1)], sample.tokenizer, sample.masking, seed=1)
    hidden = batch["labels"][:, 1:-1] != IGNORED_LABEL
    assert (hidden.all(axis=1) == hidden.any(axis=1)).all() and 0 < hidden.all(axis=1).sum() < 21


# ---- hiding

COUNT = 60_000


def test_some_words_are_hidden_as_a_whole_and_become_mask_another_or_stay():
    masking = WholeWordMasking(CharTokenizer([*SPECIAL, *"一二三四五六七八九十"]))
    random = np.random.default_rng(3)
    ids = random.integers(5, 15, COUNT).astype(np.int32)
    starts = np.zeros(COUNT, dtype=bool)
    places = np.cumsum([0, *random.integers(1, 5, COUNT)])
    starts[places[places < COUNT]] = True
    inputs, labels = masking.hide(ids, starts, np.random.default_rng(5))
    is_hidden = labels != IGNORED_LABEL
    assert is_hidden.mean() == pytest.approx(0.15, abs=0.005)
    words = np.cumsum(starts) - 1
    share = np.bincount(words, weights=is_hidden) / np.bincount(words)
    assert set(share.tolist()) == {0.0, 1.0}
    for size in (1, 2, 3, 4):
        assert share[np.bincount(words) == size].mean() == pytest.approx(0.15, abs=0.02)
    assert np.array_equal(inputs[~is_hidden], ids[~is_hidden])
    now, before = inputs[is_hidden], labels[is_hidden]
    assert np.array_equal(before, ids[is_hidden])
    assert np.mean(now == masking.mask_token_id) == pytest.approx(0.8, abs=0.02)
    # a random token is the same by chance once in ten
    assert np.mean(now == before) == pytest.approx(0.1 + 0.1 / 10, abs=0.02)
    assert set(now[(now != masking.mask_token_id) & (now != before)].tolist()) == set(range(5, 15))
    again, other = (masking.hide(ids, starts, np.random.default_rng(seed)) for seed in (5, 6))
    assert np.array_equal(again, [inputs, labels]) and not np.array_equal(other[1], labels)
    for size in (1, 2, 5):  # even the shortest text has something to predict
        _, labels = masking.hide(np.full(size, 7, dtype=np.int32), np.arange(size) == 0, np.random.default_rng(0))
        assert (labels == 7).all()


# ---- stages and batches
TWO = [Stage(512, 8, 100), Stage(128, 32, 50)]
STAGES = parse_stages("40x3x5,16x7x30,40x3x4")


@pytest.mark.parametrize("value", [
    " 512x8x100 , 128x32x50", ["512x8x100", "128x32x50"],
    [{"steps": 100, "max_tokens": 512, "batch_size": 8}, "128x32x50"],
    [{"max_tokens": "512", "batch_size": "8", "steps": "100"}, {"max_tokens": 128, "batch_size": 32, "steps": 50}],
], ids=str)  # fmt: skip
def test_stages_are_given_as_text_or_list(value):
    assert parse_stages(value) == TWO


def make(sample, seed=1, batches_per_step=1, *first_share, stages=STAGES):
    drawn = seed, batches_per_step, *first_share
    return StageBatches(sample.stream, stages, sample.tokenizer, sample.masking, *drawn)


def true_tokens(batch):
    """``[batch, seq]``, the hidden tokens as they were."""
    return np.where(batch["labels"] != IGNORED_LABEL, batch["labels"], batch["input_ids"])


def special_ids(tokenizer):
    return [tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id]


def equal(first, second):
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("batches_per_step, first_share", [(1, []), (4, []), (4, [0.4])])
def test_batches_follow_the_stages_and_depend_on_seed_and_number_alone(sample, batches_per_step, first_share):
    batches, again, other = (make(sample, seed, batches_per_step, *first_share) for seed in (1, 1, 2))
    shapes = [batches[index]["input_ids"].shape for index in range(len(batches))]
    assert shapes == [(s.batch_size, s.max_tokens) for s in STAGES for _ in range(s.steps * batches_per_step)]
    for index in reversed(range(len(batches))):
        assert equal(again[index], batches[index]) and not equal(other[index], batches[index])


def test_batch_holds_pieces_of_documents_and_what_is_hidden_in_them(sample):
    batch, tokenizer = make(sample)[0], sample.tokenizer
    columns = ("input_ids", "labels", "positions", "segment_ids")
    assert all(batch[name].dtype == np.int64 for name in columns)
    is_padding = batch["segment_ids"] == PADDING_SEGMENT
    assert (batch["input_ids"][is_padding] == tokenizer.pad_token_id).all()
    starts = ~is_padding & (batch["positions"] == 0)
    assert (batch["input_ids"][starts] == tokenizer.cls_token_id).all()
    special = np.isin(true_tokens(batch), special_ids(tokenizer))
    assert (batch["labels"][special] == IGNORED_LABEL).all()
    whole = "\n".join(sample.documents)
    for row, segments in zip(true_tokens(batch), batch["segment_ids"]):
        for number in set(segments.tolist()) - {PADDING_SEGMENT}:
            assert tokenizer.decode(row[segments == number]) in whole
    assert 0.03 < (batch["labels"] != IGNORED_LABEL).sum() / (~special).sum() < 0.4


@pytest.mark.parametrize("first_share, shares", [
    ([], [0.15, 0.15, 0.15]), ([0.6], [0.6, 0.375, 0.15]), ([0.05], [0.05, 0.1, 0.15]),
])  # fmt: skip
def test_share_of_hidden_tokens_goes_evenly_to_that_of_the_last_batch(sample, first_share, shares):
    batches = make(sample, 1, 1, *first_share, stages=[Stage(5000, 20, 2), Stage(4999, 20, 1)])
    tokens = len(sample.stream.ids) * 20
    for index, share in enumerate(shares):
        assert (batches[index]["labels"] != IGNORED_LABEL).sum() / tokens == pytest.approx(share, abs=0.02)


def test_all_rows_come_before_any_comes_again_in_another_order_and_with_another_mask(sample):
    batches = make(sample, stages=[Stage(16, 7, 100)])
    rows = len(batches.rows[16])
    seen = np.concatenate([true_tokens(batches[index]) for index in range(len(batches))]).tolist()
    first, second = seen[:rows], seen[rows : 2 * rows]
    assert sorted(first) == sorted(second) and first != second
    batches = make(sample, stages=[Stage(5000, 2, 3)])
    assert len(batches.rows[5000]) == 1
    labels = np.concatenate([batches[index]["labels"] for index in range(3)])
    assert labels.shape == (6, 5000) and len({row.tobytes() for row in labels}) == 6  # also in one batch
    assert len({row.tobytes() for index in range(3) for row in true_tokens(batches[index])}) == 1


def test_dev_batches_hold_every_token_once_and_hide_the_same_at_every_length(sample):
    answers = []
    for length in (16, 40, 5000):
        batches = DevBatches(sample.stream, Stage(length, 3, 1), sample.tokenizer, sample.masking)
        parts = list(batches)
        assert all(equal(a, b) for a, b in zip(parts, batches, strict=True))
        tokens, labels, inputs = (
            np.concatenate([array.ravel() for array in arrays])
            for arrays in zip(*((true_tokens(part), part["labels"], part["input_ids"]) for part in parts))
        )
        tokens = tokens[~np.isin(tokens, special_ids(sample.tokenizer))]
        assert np.array_equal(np.sort(tokens), np.sort(sample.stream.ids))
        hidden = labels != IGNORED_LABEL
        answers.append((np.sort(labels[hidden]).tolist(), np.sort(inputs[hidden]).tolist()))
    assert answers[0] == answers[1] == answers[2]
    assert 0.1 < len(answers[0][0]) / len(sample.stream.ids) < 0.2


def test_processes_share_the_batches_of_each_step():
    parts = [list(InOrder(24, first=8, num_replicas=2, rank=rank)) for rank in (0, 1)]
    assert parts == [[[n] for n in range(first, 24, 2)] for first in (8, 9)]
    assert len(InOrder(24, first=8, num_replicas=2)) == 12
