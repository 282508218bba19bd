"""Scores equal their definitions; the threshold is the best there is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tasks.matching.evaluation import best_threshold, choosing_score, matching_scores


def test_scores_of_pairs_are_their_definitions():
    labels, scores = [1, 1, 0, 0, 1, 0, 0], np.array([[0.9], [0.2], [0.6], [0.1], [0.5], [0.4], [0.3]])
    correlation = {"spearman": pytest.approx(spearmanr(labels, scores[:, 0])[0])}
    assert matching_scores("pairs", labels, scores, threshold=0.5) == {  # 0.9, 0.6 and 0.5 are taken for 1
        **{"accuracy": 5 / 7, "precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3}, **correlation
    }  # fmt: skip
    assert matching_scores("pairs", labels, scores) == correlation


def test_equal_scores_correlate_with_nothing_and_no_positive_has_no_f1():
    result = matching_scores("pairs", [0, 1, 0], np.full([3, 1], 0.2), threshold=0.5)
    assert result == {"accuracy": pytest.approx(2 / 3), "f1": 0, "precision": 0, "recall": 0, "spearman": 0}


def test_grades_have_the_correlation_alone():
    grades = np.random.randint(0, 6, 30)
    scores = np.round(np.random.rand(30) + grades / 5, 1)  # with equal ones
    result = matching_scores("grades", grades, scores[:, None], threshold=0.5)
    assert result == {"spearman": pytest.approx(spearmanr(grades, scores)[0], abs=1e-6)}


def test_triples_are_right_where_the_closer_one_scores_higher():
    scores = np.array([[0.5, 0.4], [0.5, 0.4], [0.1, 0.9], [0.9, 0.1], [0.3, 0.3]])
    assert matching_scores("triples", [1, 0, 0, 1, 1], scores) == {"accuracy": 3 / 5}


@settings(max_examples=50, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(np.linspace(0, 1, 6, dtype=np.float32))), min_size=1))
def test_no_threshold_is_better_than_the_best(examples):
    labels, scores = map(np.array, zip(*examples))

    def accuracy(threshold):
        return matching_scores("pairs", labels, scores[:, None], threshold)["accuracy"]

    assert accuracy(best_threshold(labels, scores)) == max(map(accuracy, [*scores - 0.05, 2.0]))


def test_threshold_is_halfway_between_the_scores():
    assert best_threshold([1, 0, 1, 0], [0.75, 0.25, 0.5, 0.0]) == 0.375
    assert best_threshold([0, 0], [0.5, 0.25]) > 0.5
    assert best_threshold([1, 1], [0.5, 0.25]) == 0.25


@pytest.mark.parametrize("task, of_cross_encoder, of_bi_encoder", [
    ("pairs", "accuracy", "spearman"), ("grades", "spearman", "spearman"), ("triples", "accuracy", "accuracy"),
])  # fmt: skip
def test_score_that_chooses_the_epoch(task, of_cross_encoder, of_bi_encoder):
    assert (choosing_score(task, True), choosing_score(task, False)) == (of_cross_encoder, of_bi_encoder)
