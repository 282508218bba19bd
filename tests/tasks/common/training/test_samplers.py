"""Batches of like length."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.common.training.trainer import LengthGroupedBatchSampler

LENGTHS = np.random.RandomState(0).randint(1, 500, size=103)


def batches(lengths=LENGTHS, batch_size=8, epoch=0, **options):
    sampler = LengthGroupedBatchSampler(lengths, batch_size, **options)
    sampler.set_epoch(epoch)
    listed = list(sampler)
    assert len(listed) == len(sampler)
    return listed


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    size=st.integers(1, 103), batch_size=st.integers(1, 9), processes=st.integers(1, 3),
    window=st.sampled_from([1, 3, 50]), epoch=st.integers(0, 7),
)  # fmt: skip
def test_every_example_comes_in_equally_many_batches_of_each_process(size, batch_size, processes, window, epoch):
    options = {"seed": 3, "num_replicas": processes, "window": window}
    of_processes = [batches(LENGTHS[:size], batch_size, epoch, rank=rank, **options) for rank in range(processes)]
    assert len({len(listed) for listed in of_processes}) == 1
    indices = sorted(index for listed in of_processes for batch in listed for index in batch)
    assert set(indices) == set(range(size))
    if processes == 1 or size % (batch_size * processes) == 0:
        assert indices == list(range(size))  # none twice
    for step in zip(*of_processes):
        assert len({len(batch) for batch in step}) == 1


def test_each_epoch_and_seed_has_another_order_which_leaves_other_random_numbers_alone():
    before = np.random.get_state()[1].tolist()
    first, second = batches(seed=3), batches(seed=3, epoch=1)
    assert np.random.get_state()[1].tolist() == before
    assert sorted(first) != sorted(second) and batches(seed=3) == first and batches(seed=4) != first


def test_batches_hold_like_lengths_and_come_in_mixed_order():
    listed = batches()
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in listed)
    assert padded < 1.15 * LENGTHS.sum()  # 1.8 times in random batches
    longest = [LENGTHS[batch].max() for batch in listed]
    assert longest != sorted(longest)
    pair = [batches(LENGTHS[:96], num_replicas=2, rank=rank) for rank in (0, 1)]
    assert max(abs(LENGTHS[a].mean() - LENGTHS[b].mean()) for a, b in zip(*pair)) < 50
