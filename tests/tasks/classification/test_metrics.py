"""Accuracy, macro F1 and confusions, against counts made by hand."""

import pytest

from tasks.classification.evaluation import classification_scores

GOLD = ["a", "a", "a", "b", "b", "c"]
FOUND = ["a", "a", "b", "b", "c", "b"]


def test_scores_are_those_counted_by_hand():
    scores = classification_scores(GOLD, FOUND, ["a", "b", "c", "d"])
    assert scores["accuracy"] == pytest.approx(3 / 6)
    f1 = [2 * 2 / (3 + 2), 2 * 1 / (2 + 3), 0.0]
    assert [scores["per_class"][name]["f1"] for name in "abc"] == pytest.approx(f1)
    assert scores["per_class"]["a"] == {
        "precision": 1.0, "recall": pytest.approx(2 / 3), "f1": pytest.approx(0.8), "support": 3, "predicted": 2,
        "correct": 2,
    }  # fmt: skip
    assert scores["macro_f1"] == pytest.approx(sum(f1) / 3)  # without d, which is nowhere


def test_a_class_that_is_only_predicted_counts_in_macro_f1():
    assert classification_scores(["a", "a"], ["a", "b"], ["a", "b"])["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)


def test_confusions_come_by_frequency_and_hold_every_error():
    scores = classification_scores([*GOLD, "c"], [*FOUND, "b"], ["a", "b", "c"])
    assert [tuple(row.values()) for row in scores["confusions"]] == [("c", "b", 2), ("a", "b", 1), ("b", "c", 1)]


def test_all_right_is_1_without_confusions():
    scores = classification_scores(GOLD, GOLD, ["a", "b", "c"])
    assert (scores["accuracy"], scores["macro_f1"], scores["confusions"]) == (1.0, 1.0, [])
