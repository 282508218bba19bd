"""Reliability of probabilities, computed by hand."""

import numpy as np
import pytest

from tasks.ner.examples import Entity
from tasks.ner.prediction.temperatures import probabilities_of
from tasks.ner.reports.reliability import BINS, calibration, error_line, print_reliability, reliability


def test_bins_hold_equal_numbers_and_the_error_is_their_mean_distance():
    probabilities = np.array([0.55, 0.65, 0.75, 0.85, 0.95] * 4)
    result = calibration(np.log(probabilities / (1 - probabilities)), np.array([0, 1, 0, 1, 1] * 4))
    assert [row["entities"] for row in result["bins"]] == [2] * BINS
    assert [row["probability"] for row in result["bins"]] == pytest.approx(sorted(probabilities)[::2])
    assert [row["correct"] for row in result["bins"]] == [0, 0, 1, 1, 0, 0, 1, 1, 1, 1]
    assert result["expected_calibration_error"] == pytest.approx((0.55 + 0.35 + 0.75 + 0.15 + 0.05) / 5)
    assert result["bins"][0]["from"] == pytest.approx(0.55) and result["bins"][-1]["to"] == pytest.approx(0.95)


def test_calibrated_data_have_a_small_error_and_overconfident_ones_the_distance():
    random = np.random.RandomState(0)
    scores = random.normal(1, 2, 50_000)
    labels = random.rand(50_000) < probabilities_of(scores, 1.0)
    plain, sharp = calibration(scores, labels), calibration(3 * scores, labels)
    assert plain["expected_calibration_error"] < 0.01 and sharp["expected_calibration_error"] > 0.1
    assert sharp["negative_log_likelihood"] > plain["negative_log_likelihood"]
    for row, expected in zip(calibration(3 * scores, labels, 3.0)["bins"], plain["bins"], strict=True):
        assert row == pytest.approx(expected)


GOLD = [[Entity(0, 1, "a"), Entity(1, 2, "b")], []]
FOUND = [[Entity(0, 1, "a", 2.0), Entity(1, 2, "b", 2.0)], [Entity(0, 1, "b", 1.0)]]


@pytest.mark.parametrize(
    "found, temperatures, errors",
    [
        (FOUND, [4.0, 1.0], (((1 - 0.6225) + (1 - 0.8808) + 0.7311) / 3, ((1 - 0.8808) * 2 + 0.7311) / 3)),
        (FOUND, [1.0, 1.0], (((1 - 0.8808) * 2 + 0.7311) / 3,) * 2),
        ([[], []], [2.0, 1.0], (None, None)),
    ],
)
def test_a_type_has_its_temperature_and_both_errors_are_said(found, temperatures, errors, capsys):
    result = reliability(GOLD, found, ["a", "b"], temperatures)
    assert result["temperatures"] == dict(zip("ab", temperatures)) and result["entities"] == sum(map(len, found))
    kinds = [result[name] for name in ("calibrated", "uncalibrated")]
    assert [kind["expected_calibration_error"] for kind in kinds] == [e and pytest.approx(e, abs=1e-4) for e in errors]
    print_reliability(result)
    printed, line = capsys.readouterr().out, error_line(result)
    if errors[0] is None:
        assert printed == "" and kinds[0] == {**kinds[0], "negative_log_likelihood": None, "bins": []}
    else:
        assert line in printed and all(f"{error:.3f}" in line for error in errors)
        assert "0.881 to 0.881" in printed
