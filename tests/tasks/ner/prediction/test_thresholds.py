"""Thresholds: the best there are on labeled data, and the one for an F1."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_rope.tasks.ner.calibration import (
    FIRST_TEXTS,
    LOWEST_THRESHOLD,
    above_thresholds,
    find_candidates,
    threshold_for_f1,
    thresholds_for,
    tune_thresholds,
)
from paddle_rope.tasks.ner.examples import Entity
from paddle_rope.tasks.ner.metrics import entity_scores
from tests.tasks.ner.conftest import labeled

TYPES = ["a", "b", "c"]


def f1(gold, candidates, thresholds, allow_overlap=True):
    return entity_scores(labeled(gold), above_thresholds(candidates, thresholds, TYPES, allow_overlap), TYPES)["f1"]


def found(*entities):
    """What is found in one text."""
    return [[Entity(*entity) for entity in entities]]


# of a candidate: text, type, score, whether it is right
SCORES = st.sampled_from([-4.5, -2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0])
CANDIDATES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(TYPES), SCORES, st.booleans()), max_size=15)


@pytest.mark.equation("6.24")
@settings(max_examples=40)
@given(CANDIDATES, st.sets(st.sampled_from(TYPES)))
def test_no_other_thresholds_have_a_higher_f1(drawn, never_found):
    gold, candidates = [set() for _ in range(4)], [[] for _ in range(4)]
    for place, (text, kind, score, is_right) in enumerate(drawn):
        candidates[text].append(Entity(place, place + 1, kind, score))
        gold[text] |= {(place, place + 1, kind)} if is_right else set()
    gold[0] |= {(99, 100, kind) for kind in never_found}
    tuned = tune_thresholds(labeled(gold), candidates, TYPES)
    every = [-5.0, -4.0, -1.5, -0.5, -0.1, 0.1, 0.75, 2.0, 9.0]
    best = max(f1(gold, candidates, bounds) for bounds in itertools.product(every, repeat=3))
    assert f1(gold, candidates, tuned) == pytest.approx(best)
    assert f1(gold, candidates, tuned) >= f1(gold, candidates, 0.0)


A, A_AND_LATER = {(0, 1, "a")}, {(0, 1, "a"), (5, 6, "a")}


@pytest.mark.equation("6.25")
@pytest.mark.parametrize("gold, candidates, expected", [  # the thresholds of "a" and "b"
    # in the middle of the scores that it separates; above all scores of b, none of which is right
    ({(0, 1, "a"), (1, 2, "a")}, [(0, 1, "a", 3.0), (1, 2, "a", -1.0), (2, 3, "a", -2.0)], (-1.5, 0.0)),
    (A, [(0, 1, "a", 3.0), (3, 4, "b", 1.5), (4, 5, "b", 0.5)], (0.0, 2.0)),
    # zero stays where nothing is better
    (A, [(0, 1, "a", 2.0), (1, 2, "a", -2.0)], (0.0, 0.0)),
    (set(), [], (0.0, 0.0)),
    # a score of exactly zero is not above the threshold zero
    (A, [(0, 1, "a", 0.0), (1, 2, "a", -3.0)], (-1.5, 0.0)),
    # equal scores are in or out together
    (A_AND_LATER, [(0, 1, "a", -1.0), (1, 2, "a", -1.0), (5, 6, "a", 2.0)], ((-1 + LOWEST_THRESHOLD) / 2, 0.0)),
    ({(5, 6, "a")}, [(0, 1, "a", 1.0), (5, 6, "a", 1.0), (6, 7, "a", 1.0)], (0.0, 0.0)),
    # F1 2/3 above 3 and above 0: the nearest to zero
    (A_AND_LATER, [(0, 1, "a", 4.0), (2, 3, "a", 3.0), (3, 4, "a", 3.0), (5, 6, "a", 2.0)], (0.0, 0.0)),
    # F1 2/3 above 1 and above -1, 1/2 at 0: of two as near the higher
    (A_AND_LATER, [(0, 1, "a", 3.0), (2, 3, "a", 1.0), (3, 4, "a", 1.0), (5, 6, "a", -1.0)], (2.0, 0.0)),
])  # fmt: skip
def test_which_of_the_best_thresholds_is_taken(gold, candidates, expected):
    assert tune_thresholds(labeled([gold]), found(*candidates), TYPES) == [*expected, 0.0]


@pytest.mark.parametrize("low", [np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2))])  # halves go to even
def test_neighboring_numbers_are_separated_also_in_float32(low):
    high = np.nextafter(low, np.float32(2))
    candidates = found((0, 1, "a", float(high)), (1, 2, "a", float(low)))
    bound = np.float32(tune_thresholds(labeled([A]), candidates, TYPES)[0])
    assert high > bound and not low > bound


@pytest.mark.parametrize("gold, candidates, flat, nested", [
    # a lower threshold lets in the second entity; if entities may overlap, two wrong ones come with it
    ([(0, 2, "a"), (3, 5, "a")],
     [(0, 2, "a", 2.0), (0, 3, "a", 1.0), (1, 2, "a", -0.5), (3, 5, "a", -1.0), (5, 6, "b", -3.0)],
     [-3.0, 0.0, 0.0], [1.5, 0.0, 0.0]),
    # without "b", which is wrong, two wrong "a" that it overlaps would come in its place
    ([(2, 3, "a")], [(0, 2, "b", 4.0), (0, 1, "a", 3.5), (1, 2, "a", 3.4), (2, 3, "a", 3.0)], [0.0] * 3, None),
    # without "b" one wrong "a" comes in its place: as good
    ([(2, 3, "a")], [(0, 2, "b", 4.0), (0, 1, "a", 3.5), (2, 3, "a", 3.0)], [0.0, 4.5, 0.0], None),
])  # fmt: skip
def test_thresholds_count_what_is_left_of_overlaps(gold, candidates, flat, nested):
    examples = labeled([gold])
    candidates = found(*candidates)
    for allow_overlap, expected in ((False, flat), (True, nested)):
        tuned = thresholds_for(examples, candidates, TYPES, allow_overlap)
        assert expected is None or tuned == expected
        scores = [f1([gold], candidates, bounds, allow_overlap) for bounds in (tuned, 0.0)]
        assert scores[0] >= scores[1]


def test_a_model_that_does_not_tell_spans_apart_is_left_after_a_few_texts():
    calls = []

    def find(texts):
        calls.append(len(texts))
        return [[Entity(0, 1, "a", 0.0)] * 100 for _ in texts]

    assert find_candidates(find, ["甲"] * 500, [1] * 500) is None
    assert calls == [FIRST_TEXTS]
    assert find_candidates(find, ["甲" * 9] * 500, [9] * 500) == find([None] * 500)
    assert sum(calls[1:-1]) == 500 and max(calls[1:-1]) < 300
    assert find_candidates(find, ["甲"] * 10, [1] * 10) == find([None] * 10)  # 1,000 are never too many


@pytest.mark.equation("6.26")
def test_half_of_the_f1_is_best_where_probabilities_are_right():
    logits = np.sort(np.random.default_rng(0).normal(-1.5, 2, size=500))[::-1]
    probabilities = 1 / (1 + np.exp(-logits))
    correct, predicted = np.cumsum(probabilities), np.arange(1, 501)
    f1 = 2 * correct / (predicted + probabilities.sum())  # expected, with so many predicted
    best = int(f1.argmax())
    assert logits[best] > threshold_for_f1(f1[best]) >= logits[best + 1]
    assert threshold_for_f1(1) == 0 > threshold_for_f1(0.5) > -3
    assert threshold_for_f1(0) == threshold_for_f1(1e-9) == -3
