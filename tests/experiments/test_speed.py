"""Time and memory against length: what is measured, left out, fitted and written."""

import json
import signal
from itertools import combinations

import pytest
import yaml

from tasks.commands.benchmark.encoders import benchmark_length
from tasks.common.errors import exit_on_input_error
from tasks.common.reports.figures import pixels
from tasks.experiments.benchmarks import speed
from tasks.experiments.benchmarks.models import measure

run = exit_on_input_error(benchmark_length)
MODEL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
LENGTHS = [64, 128, 256, 512, 1024]


def power_law(given):
    """In place of a measurement: softmax quadratic from 1 s, linear from 4 s, at 64 tokens."""
    ratio = given["length"] / 64
    seconds = ratio**2 if given["options"]["attention"] == "softmax" else 4 * ratio
    return {"seconds": seconds, "peak_mb": round(500 + 10 * seconds), "idle_mb": 500}


def rows_of(folder):
    return json.loads((folder / "out" / "speed.json").read_text(encoding="utf-8"))


@pytest.fixture
def plan_file(tmp_path):
    plan = {
        "output_dir": str(tmp_path / "out"),
        "model": MODEL,
        "reference": "softmax",
        "memory_limit": 100,
        "time_limit": 10000,
        "lengths": LENGTHS,
        "variants": {"softmax": {"attention": "softmax"}, "linear": {"attention": "linear"}},
    }
    path = tmp_path / "speed.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    return path


def change(path, **keys):
    plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**plan, **keys}, sort_keys=False), encoding="utf-8")
    return path


def test_table_page_and_picture_hold_what_was_measured(plan_file, monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "measure_apart", power_law)
    assert run([str(plan_file)]) == 0
    page = (tmp_path / "out" / "speed.md").read_text(encoding="utf-8")
    assert "| train | softmax | 1024 | 2.00 | 2.00 |  |  |" in page
    assert "| train | linear | 1024 | 1.00 | 1.00 | 256 | 256 |\n" in page  # where 16 = 4 * 4
    rows = rows_of(tmp_path)
    assert len(rows) == 2 * 2 * len(LENGTHS) and rows[1] == {
        "job": "train", "variant": "softmax", "length": 128, "seconds": 4.0, "peak_mb": 540, "idle_mb": 500,
        "left_out": "", "options": {"device": "cpu", "task": "classification", **MODEL, "attention": "softmax"},
    }  # fmt: skip
    table = (tmp_path / "out" / "speed.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == 1 + len(rows) and table[2] == "train,softmax,128,4.0,540,500,"
    assert (tmp_path / "out" / "speed.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("lengths", [[256, 512, 1024], [128 << n for n in range(10)]])
def test_ticks_of_the_picture_are_plain_numbers_that_do_not_touch(plan_file, lengths, monkeypatch):
    monkeypatch.setattr(speed, "measure_apart", power_law)
    figures = []
    monkeypatch.setattr(speed, "png", lambda figure: figures.append(figure) or b"")
    assert run([str(change(plan_file, lengths=lengths))]) == 0
    pixels(figures[0])  # places the labels
    for axes in figures[0].axes[::2]:  # the others share their labels
        for axis in (axes.xaxis, axes.yaxis):
            ticks = axis.get_major_ticks() + axis.get_minor_ticks()
            labels = [tick.label1 for tick in ticks if tick.label1.get_visible() and tick.label1.get_text()]
            low, high = axis.get_view_interval()
            labels = [label for label in labels if low <= label.get_position()[axis is axes.yaxis] <= high]
            assert all(float(label.get_text()) > 0 for label in labels)
            boxes = [label.get_window_extent() for label in labels]
            assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    shown = [tick.label1.get_text() for tick in figures[0].axes[2].xaxis.get_major_ticks()]
    assert shown == list(map(str, lengths))


def test_what_is_in_the_table_is_not_measured_again_and_what_was_left_out_is_thought_of_anew(
    plan_file, monkeypatch, tmp_path
):
    measured = []

    def measure(given):
        measured.append((given["job"], given["options"]["attention"], given["length"]))
        if len(measured) == 12:
            raise KeyboardInterrupt
        return power_law(given)

    monkeypatch.setattr(speed, "measure_apart", measure)
    change(plan_file, time_limit=100)
    assert run([str(plan_file)]) == 128 + signal.SIGINT
    first = measured.copy()
    assert ("train", "softmax", 1024) not in first  # 256 s foreseen
    measured[:] = [None] * 20
    change(plan_file, time_limit=10000)
    assert run([str(plan_file)]) == 0
    again = measured[20:]
    assert ("train", "softmax", 1024) in again and not set(again) & set(first[:-1])
    assert len(again) + len(first) - 1 == 2 * 2 * len(LENGTHS)


def test_a_process_that_fails_leaves_its_length_and_the_longer_ones_out(plan_file, monkeypatch, tmp_path):
    def measure(given):
        failed = {"left_out": "failed with status -9: it said nothing"}
        return failed if given["length"] == 512 else power_law(given)

    monkeypatch.setattr(speed, "measure_apart", measure)
    assert run([str(plan_file)]) == 0
    rows = rows_of(tmp_path)
    assert [row["left_out"] for row in rows[:5]] == [
        "", "", "", "failed with status -9: it said nothing", "a shorter text is left out",
    ]  # fmt: skip


NER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_size": 8}


@pytest.mark.parametrize(
    "job, task, options",
    [
        ("train", "classification", {**MODEL, "attention": "linear", "recompute": True}),
        ("predict", "classification", {**MODEL, "attention": "softmax"}),
        ("train", "ner", {**NER, "attention": "softmax", "recompute": True}),
        ("predict", "ner", {**NER, "attention": "linear", "max_span_length": 16}),
    ],
)
def test_measurement_gives_seconds_and_memory(job, task, options):
    result = measure(task, job, options, 64)
    assert result["seconds"] > 0 and 10 < result["idle_mb"] <= result["peak_mb"] < 100_000


def test_measurement_in_a_process_of_its_own_says_why_it_fails():
    given = {"task": "classification", "job": "predict", "options": MODEL, "length": 64, "device": "cpu"}
    assert speed.measure_apart(given).keys() == {"seconds", "peak_mb", "idle_mb"}
    failed = speed.measure_apart({**given, "options": {**MODEL, "hidden_size": 15}})
    assert failed["left_out"].startswith("failed with status 1: ValueError")


@pytest.mark.parametrize(
    "keys, said",
    [
        ({"lengths": [128, 64]}, "whole numbers that rise"),
        ({"lengths": ["a"]}, "whole numbers that rise"),
        ({"lengths": 64}, "lengths is 64; it has to be a list"),
        ({"model": ["x"]}, "model is ['x']; it has to be a mapping"),
        ({"variants": {"softmax": None}}, "variant softmax is None, not a mapping"),
        ({"variants": {"softmax": {"atention": "linear"}}}, "no option 'atention'; the nearest is 'attention'"),
        (
            {"variants": {"softmax": {"attention": "lineer"}}},
            "attention must be one of softmax, linear, window",
        ),
        ({"task": "x"}, "task is 'x'; it has to be one of classification, ner"),
        ({"task": "ner", "model": NER, "variants": {"softmax": {"max_span_length": 9}}}, "must be 10 or more"),
        ({"reference": "x"}, "the reference 'x'"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"model": None}, "no 'model'"),
    ],
)
def test_a_wrong_plan_is_refused(plan_file, keys, said, capsys):
    assert run([str(change(plan_file, **keys))]) == 2
    assert said in capsys.readouterr().err


def test_measurements_of_other_options_are_not_taken_for_those_of_a_changed_plan(
    plan_file, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(speed, "measure_apart", power_law)
    assert run([str(plan_file)]) == 0
    more = {"softmax": {"attention": "softmax"}, "mixed": {"attention": "linear"}}
    assert run([str(change(plan_file, variants=more))]) == 0
    assert {row["variant"] for row in rows_of(tmp_path)} == {"softmax", "mixed", "linear"}
    table = (tmp_path / "out" / "speed.csv").read_bytes()
    change(plan_file, task="ner", model=NER)
    assert run([str(plan_file)]) == 2
    change(plan_file, task="classification", model={**MODEL, "hidden_size": 32})
    assert run([str(plan_file)]) == 2
    assert "softmax was run with hidden_size 16, and the plan now has 32" in capsys.readouterr().err
    assert (tmp_path / "out" / "speed.csv").read_bytes() == table
    assert run([str(plan_file), "--output_dir", str(tmp_path / "other")]) == 0
