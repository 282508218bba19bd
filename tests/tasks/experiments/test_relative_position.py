"""The controlled task: what its sequences tell and do not tell, and its recipe."""

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.experiments.relative_position.recipe import (
    FIRST,
    LABELS,
    SECOND,
    SPLIT_SEEDS,
    VOCABULARY,
    RelativePositionRecipe,
    make_sequences,
)


@pytest.mark.parametrize("length", [32, 257])
def test_label_is_the_order_of_two_far_stretches_of_markers(length):
    ids, labels = make_sequences(length, 200, seed=1)
    assert ids.shape == (200, length) and ids.min() >= 1 and ids.max() < VOCABULARY
    for row, label in zip(ids, labels):
        first, second = np.flatnonzero(row == FIRST), np.flatnonzero(row == SECOND)
        for places in (first, second):
            assert len(places) == length // 16 and places[-1] - places[0] == len(places) - 1
        assert (first[0] < second[0]) == label
        assert length // 4 <= abs(first[0] - second[0]) <= 3 * length // 4


def test_tokens_without_their_order_and_the_places_of_markers_tell_nothing():
    ids, labels = make_sequences(64, 4000, seed=2)
    assert np.bincount(labels).tolist() == [2000, 2000]
    counts = np.stack([(ids == token).sum(axis=1) for token in range(VOCABULARY)], axis=1)
    marked = (ids == FIRST) | (ids == SECOND)
    for figures in (counts, marked):
        of_each = [figures[labels == label].mean(axis=0) for label in range(LABELS)]
        spread = figures.std(axis=0) * np.sqrt(2 / 2000)
        assert (np.abs(of_each[0] - of_each[1]) <= 4.5 * spread + 1e-12).all()


def test_seed_decides_and_splits_of_all_seeds_differ():
    assert all((a == b).all() for a, b in zip(make_sequences(32, 10, 5), make_sequences(32, 10, 5)))
    drawn = {
        make_sequences(32, 10, 3 * seed + split)[0].tobytes() for seed in range(3) for split in SPLIT_SEEDS.values()
    }
    assert len(drawn) == 9


@pytest.mark.parametrize(
    "given, said", [({"train_file": "x"}, "'train_file': the sequences"), ({"length": 31}, "length must be 32 or more")]
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        RelativePositionRecipe().resolve({"length": 32, "output_dir": "run", "device": "cpu", **given})
