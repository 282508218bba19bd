"""Stages, and the batches of their rows."""

import numpy as np
import pytest

from paddle_rope.roformer.heads import IGNORED_LABEL
from tasks.common.errors import InputError
from tasks.common.training.step_trainer import InOrder
from tasks.pretraining.arguments import Stage, parse_stages
from tasks.pretraining.batches import DevBatches, StageBatches
from tasks.pretraining.packing import PADDING_SEGMENT

TWO = [Stage(512, 8, 100), Stage(128, 32, 50)]
STAGES = parse_stages("40x3x5,16x7x30,40x3x4")


@pytest.mark.parametrize("value", [
    " 512x8x100 , 128x32x50", ["512x8x100", "128x32x50"],
    [{"steps": 100, "max_tokens": 512, "batch_size": 8}, "128x32x50"],
    [{"max_tokens": "512", "batch_size": "8", "steps": "100"}, {"max_tokens": 128, "batch_size": 32, "steps": 50}],
], ids=str)  # fmt: skip
def test_stages_are_given_as_text_or_list(value):
    assert parse_stages(value) == TWO


@pytest.mark.parametrize("value, said", [
    (None, "stages"), ([], "stages"), ("512x8", "stage 1"), ("512x8x1,512x8x1x1", "stage 2"), ("512x8x1,", "stage 2"),
    ("512x8x-1", "stage 1"), ("512x8x1.5", "stage 1"), ("4x8x1", "8 or more"), ("512x0x1", "1 or more"),
    ("512x8x0", "1 or more"), ([{"max_tokens": 512, "batch_size": 8}], "stage 1"),
    ([{"max_tokens": 512, "batch_size": 8, "step": 1}], "stage 1"), ([[512, 8, 100]], "stage 1"),
])  # fmt: skip
def test_bad_stage_is_named(value, said):
    with pytest.raises(InputError, match=said):
        parse_stages(value)


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
    assert all(batch[name].dtype == np.int64 for name in columns) and batch["token_mask"].dtype == bool
    assert (batch["input_ids"][~batch["token_mask"]] == tokenizer.pad_token_id).all()
    starts = batch["token_mask"] & (batch["positions"] == 0)
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
        assert len(parts) == len(batches) and all(equal(a, b) for a, b in zip(parts, batches))
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
