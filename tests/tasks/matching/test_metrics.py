"""Scores equal their definitions; the threshold is the best there is."""

import numpy as np
import pytest

from tasks.matching.evaluation import best_threshold, choosing_score, matching_scores


def slow_spearman(x, y):
    """Pearson correlation of the ranks, equal values having the mean of theirs."""

    def ranks(values):
        return np.array([np.mean([i for i, v in enumerate(sorted(values)) if v == value]) for value in values])

    return np.corrcoef(ranks(x), ranks(y))[0, 1]


def column(scores):
    return np.array(scores, dtype=np.float32)[:, None]


def test_scores_of_pairs_are_their_definitions():
    labels, scores = [1, 1, 0, 0, 1, 0, 0], [0.9, 0.2, 0.6, 0.1, 0.5, 0.4, 0.3]
    result = matching_scores("pairs", labels, column(scores), threshold=0.5)
    assert result["accuracy"] == pytest.approx(5 / 7)  # found: 0.9, 0.6, 0.5
    assert (result["precision"], result["recall"]) == pytest.approx((2 / 3, 2 / 3))
    assert result["f1"] == pytest.approx(2 / 3)
    assert result["spearman"] == pytest.approx(slow_spearman(labels, scores))


def test_pairs_without_a_threshold_and_grades_have_the_correlation_alone():
    labels, scores = [0, 1, 1, 0], [0.1, 0.4, 0.3, 0.2]
    assert matching_scores("pairs", labels, column(scores)).keys() == {"spearman"}
    grades = np.random.randint(0, 6, 30)
    scores = np.round(np.random.rand(30) + grades / 5, 1)
    result = matching_scores("grades", grades, column(scores), threshold=0.5)
    assert result == {"spearman": pytest.approx(slow_spearman(grades, scores), abs=1e-6)}


def test_equal_scores_correlate_with_nothing_and_no_positive_has_no_f1():
    result = matching_scores("pairs", [0, 1, 0], column([0.2, 0.2, 0.2]), threshold=0.5)
    assert result == {"accuracy": pytest.approx(2 / 3), "f1": 0, "precision": 0, "recall": 0, "spearman": 0}


def test_triples_are_right_where_the_closer_one_scores_higher():
    scores = np.array([[0.5, 0.4], [0.5, 0.4], [0.1, 0.9], [0.9, 0.1], [0.3, 0.3]])
    assert matching_scores("triples", [1, 0, 0, 1, 1], scores) == {"accuracy": 3 / 5}


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_no_threshold_is_better_than_the_best(size):
    for _ in range(8):
        labels = np.random.randint(0, 2, size)
        scores = np.round(np.random.rand(size), 1).astype(np.float32)  # with equal ones among them

        def accuracy(threshold, labels=labels, scores=scores):
            return matching_scores("pairs", labels, scores[:, None], threshold)["accuracy"]

        candidates = np.concatenate([scores.astype(float) - 0.05, [2.0]])
        assert accuracy(best_threshold(labels, scores)) == max(map(accuracy, candidates))


def test_threshold_is_halfway_between_the_scores():
    assert best_threshold([1, 0, 1, 0], [0.75, 0.25, 0.5, 0.0]) == 0.375
    assert best_threshold([0, 0], [0.5, 0.25]) > 0.5
    assert best_threshold([1, 1], [0.5, 0.25]) == 0.25


@pytest.mark.parametrize(
    "task, is_cross_encoder, score",
    [
        ("pairs", True, "accuracy"),
        ("pairs", False, "spearman"),
        ("grades", True, "spearman"),
        ("grades", False, "spearman"),
        ("triples", True, "accuracy"),
        ("triples", False, "accuracy"),
    ],
)
def test_score_that_chooses_the_epoch(task, is_cross_encoder, score):
    assert choosing_score(task, is_cross_encoder) == score
