"""Reliability of probabilities, computed by hand."""

import numpy as np
import pytest

from tasks.ner.examples import Entity
from tasks.ner.prediction.temperatures import probabilities_of
from tasks.ner.reports.reliability import BINS, calibration, error_line, print_reliability, reliability


def logit(p):
    return float(np.log(p / (1 - p)))


def test_bins_hold_equal_numbers_and_the_error_is_their_mean_distance():
    probabilities = [0.55, 0.65, 0.75, 0.85, 0.95] * 4
    labels = np.array([0, 1, 0, 1, 1] * 4)
    result = calibration([logit(p) for p in probabilities], labels)
    assert [row["entities"] for row in result["bins"]] == [2] * BINS
    assert [row["probability"] for row in result["bins"]] == pytest.approx(sorted(probabilities)[::2])
    assert [row["correct"] for row in result["bins"]] == [0, 0, 1, 1, 0, 0, 1, 1, 1, 1]
    assert result["expected_calibration_error"] == pytest.approx((0.55 + 0.35 + 0.75 + 0.15 + 0.05) / 5)
    assert result["bins"][0]["from"] == pytest.approx(0.55) and result["bins"][-1]["to"] == pytest.approx(0.95)


def test_calibrated_data_have_a_small_error_and_overconfident_ones_the_distance():
    random = np.random.RandomState(0)
    scores = random.normal(1, 2, 50_000)
    labels = random.rand(50_000) < probabilities_of(scores, 1.0)
    assert calibration(scores, labels)["expected_calibration_error"] < 0.01
    sharp = calibration(3 * scores, labels)
    assert sharp["expected_calibration_error"] > 0.1
    rows = zip(calibration(3 * scores, labels, 3.0)["bins"], calibration(scores, labels)["bins"])
    assert all(row == pytest.approx(expected) for row, expected in rows)
    assert sharp["negative_log_likelihood"] > calibration(scores, labels)["negative_log_likelihood"]


def test_temperatures_are_those_of_the_types_and_scores_stay():
    gold = [[Entity(0, 1, "a"), Entity(1, 2, "b")], []]
    found = [[Entity(0, 1, "a", 2.0), Entity(1, 2, "b", 2.0)], [Entity(0, 1, "b", 1.0)]]
    result = reliability(gold, found, ["a", "b", "c"], [4.0, 1.0, 2.0])
    assert result["temperatures"] == {"a": 4.0, "b": 1.0, "c": 2.0}
    assert [row["probability"] for row in result["calibrated"]["bins"]] == pytest.approx(
        sorted(probabilities_of([2.0, 2.0, 1.0], [4.0, 1.0, 1.0]))
    )
    assert result["uncalibrated"] == reliability(gold, found, ["a", "b", "c"])["calibrated"]
    assert result["entities"] == 3


def test_nothing_found(capsys):
    result = reliability([[Entity(0, 1, "a")]], [[]], ["a"])
    assert result["calibrated"] == {"expected_calibration_error": None, "negative_log_likelihood": None, "bins": []}
    print_reliability(result)
    assert capsys.readouterr().out == ""
    assert "nothing is found" in error_line(result)


def test_what_is_printed(capsys):
    gold = [[Entity(0, 1, "a")], []]
    found = [[Entity(0, 1, "a", 2.0)], [Entity(0, 1, "a", 1.0)]]
    print_reliability(reliability(gold, found, ["a"], 2.0))
    printed = capsys.readouterr().out
    assert "reliability of 2 found entities" in printed and "0.731 to 0.731" in printed
    after, before = (0.2689 + 0.6225) / 2, (0.1192 + 0.7311) / 2
    assert f"{after:.4f}; {before:.4f} with all temperatures 1" in printed
    assert error_line(reliability(gold, found, ["a"])).endswith("; all temperatures are 1")
