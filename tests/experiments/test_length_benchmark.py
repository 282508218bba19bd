"""Time and memory against length: which run counts, power laws, what is left out."""

import pytest

from tasks.experiments.benchmarks import lengths as length_benchmark
from tasks.experiments.benchmarks.lengths import crossing, fastest_seconds, reason_to_leave_out, slope


@pytest.mark.parametrize("seconds, counts", [([9, 4], 4), ([2, 1.5, 3], 1.5), ([1, 4.5], 1)])
def test_the_fastest_of_two_long_or_three_short_runs_counts_and_the_first_is_never_alone(seconds, counts, monkeypatch):
    now, left = 0.0, list(seconds)

    def run():
        nonlocal now
        now += left.pop(0)

    monkeypatch.setattr(length_benchmark.time, "perf_counter", lambda: now)
    assert fastest_seconds(run) == counts
    assert left == []


def test_slope_is_the_exponent_of_a_power_law():
    assert slope([10, 20, 80], [3 * n**1.7 for n in (10, 20, 80)]) == pytest.approx(1.7)


def test_crossing_is_where_the_power_laws_meet():
    lengths = [16, 64, 256, 1024]
    quadratic, linear = [n**2 / 100 for n in lengths], [n * 1.0 for n in lengths]
    assert crossing(lengths, quadratic, linear) == pytest.approx(100)
    assert crossing(lengths, linear, quadratic) is None
    assert crossing(lengths, [9] * 4, [1] * 4) == 16
    assert crossing(lengths, [2, 1, 2, 2], [1, 2, 1, 1]) == pytest.approx(128)  # the last of two


@pytest.mark.parametrize("memory, seconds, said", [(1, 1e9, "2 GB foreseen"), (1e9, 30, "64 s foreseen"), (9, 99, "")])
def test_a_length_is_left_out_by_the_power_law_of_the_last_two(memory, seconds, said):
    known = [(64, 1.0, 100), (128, 4.0, 199), (256, 16.0, 595)]
    assert reason_to_leave_out(known, 512, memory, seconds) == said
    assert reason_to_leave_out(known[:2], 512, 0, 0) == ""
