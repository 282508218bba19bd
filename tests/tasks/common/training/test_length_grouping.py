"""Batches of like length."""

import numpy as np
import pytest

from tasks.common.training.length_grouping import LengthGroupedBatchSampler

LENGTHS = np.random.RandomState(0).randint(1, 500, size=103)


def batches(sampler, epoch=0):
    sampler.set_epoch(epoch)
    return list(sampler)


def flat(listed):
    return [index for batch in listed for index in batch]


@pytest.mark.parametrize("epoch", [0, 1, 7])
@pytest.mark.parametrize("window", [1, 3, 50])
def test_every_example_comes_once_an_epoch(epoch, window):
    listed = batches(LengthGroupedBatchSampler(LENGTHS, 8, window=window), epoch)
    assert sorted(flat(listed)) == list(range(103))
    assert sorted(map(len, listed)) == [7] + [8] * 12


def test_number_of_batches_is_the_length_of_the_sampler():
    for size in (1, 7, 8, 9, 103):
        for replicas in (1, 2, 3):
            sampler = LengthGroupedBatchSampler(LENGTHS[:size], 4, num_replicas=replicas)
            assert len(batches(sampler)) == len(sampler)


def test_each_epoch_has_another_order_and_the_same_again_for_the_same_seed():
    sampler = LengthGroupedBatchSampler(LENGTHS, 8, seed=3)
    first, second = batches(sampler, 0), batches(sampler, 1)
    assert first != second and sorted(first) != sorted(second)
    assert batches(LengthGroupedBatchSampler(LENGTHS, 8, seed=3), 1) == second
    assert batches(sampler, 0) == first
    assert batches(LengthGroupedBatchSampler(LENGTHS, 8, seed=4), 0) != first


def test_order_leaves_the_random_numbers_of_the_process_alone():
    np.random.seed(1)
    expected = np.random.rand()
    np.random.seed(1)
    batches(LengthGroupedBatchSampler(LENGTHS, 8))
    assert np.random.rand() == expected


def test_batches_hold_like_lengths_and_come_in_mixed_order():
    listed = batches(LengthGroupedBatchSampler(LENGTHS, 8))
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in listed)
    assert padded < 1.15 * LENGTHS.sum()  # 1.8 times in random batches
    longest = [LENGTHS[batch].max() for batch in listed]
    assert longest != sorted(longest)


@pytest.mark.parametrize("size", [96, 103, 3])
def test_two_processes_get_equally_many_batches_that_cover_all(size):
    first, second = (
        batches(LengthGroupedBatchSampler(LENGTHS[:size], 8, num_replicas=2, rank=rank), 2) for rank in (0, 1)
    )
    assert list(map(len, first)) == list(map(len, second))
    assert set(flat(first)) | set(flat(second)) == set(range(size))


def test_two_processes_share_no_example_where_the_batches_come_out_even():
    first, second = (
        batches(LengthGroupedBatchSampler(LENGTHS[:96], 8, num_replicas=2, rank=rank), 2) for rank in (0, 1)
    )
    assert sorted(flat(first) + flat(second)) == list(range(96))
    assert set(map(len, first + second)) == {8}


def test_processes_compute_on_like_lengths_in_the_same_step():
    pair = [batches(LengthGroupedBatchSampler(LENGTHS[:96], 8, num_replicas=2, rank=rank)) for rank in (0, 1)]
    gaps = [abs(LENGTHS[a].mean() - LENGTHS[b].mean()) for a, b in zip(*pair)]
    assert max(gaps) < 50
