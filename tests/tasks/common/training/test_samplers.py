"""Batches of like length."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.common.training.samplers import LengthGroupedBatchSampler

LENGTHS = np.random.RandomState(0).randint(1, 500, size=103)


def batches(sampler, epoch=0):
    sampler.set_epoch(epoch)
    return list(sampler)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    size=st.integers(1, 103), batch_size=st.integers(1, 9), processes=st.integers(1, 3),
    window=st.sampled_from([1, 3, 50]), epoch=st.integers(0, 7),
)  # fmt: skip
def test_every_example_comes_in_equally_many_batches_of_each_process(size, batch_size, processes, window, epoch):
    options = {"seed": 3, "num_replicas": processes, "window": window}
    samplers = [
        LengthGroupedBatchSampler(LENGTHS[:size], batch_size, rank=rank, **options) for rank in range(processes)
    ]
    of_processes = [batches(sampler, epoch) for sampler in samplers]
    assert {len(listed) for listed in of_processes} == {len(sampler) for sampler in samplers}
    indices = sorted(index for listed in of_processes for batch in listed for index in batch)
    assert set(indices) == set(range(size))
    if processes == 1 or size % (batch_size * processes) == 0:
        assert indices == list(range(size))  # none twice
    for step in zip(*of_processes):
        assert len({len(batch) for batch in step}) == 1


def test_each_epoch_and_seed_has_another_order_which_leaves_other_random_numbers_alone():
    sampler = LengthGroupedBatchSampler(LENGTHS, 8, seed=3)
    before = np.random.get_state()[1].tolist()
    first, second = batches(sampler, 0), batches(sampler, 1)
    assert np.random.get_state()[1].tolist() == before
    assert sorted(first) != sorted(second) and batches(sampler, 0) == first
    assert batches(LengthGroupedBatchSampler(LENGTHS, 8, seed=3), 1) == second
    assert batches(LengthGroupedBatchSampler(LENGTHS, 8, seed=4), 0) != first


def test_batches_hold_like_lengths_and_come_in_mixed_order():
    listed = batches(LengthGroupedBatchSampler(LENGTHS, 8))
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in listed)
    assert padded < 1.15 * LENGTHS.sum()  # 1.8 times in random batches
    longest = [LENGTHS[batch].max() for batch in listed]
    assert longest != sorted(longest)
    pair = [batches(LengthGroupedBatchSampler(LENGTHS[:96], 8, num_replicas=2, rank=rank)) for rank in (0, 1)]
    assert max(abs(LENGTHS[a].mean() - LENGTHS[b].mean()) for a, b in zip(*pair)) < 50
