"""Time and memory against length: what is measured, left out, fitted and written."""

import json
import signal

import pytest
import yaml

from tasks.commands.main import main
from tasks.common.errors import InputError
from tasks.experiments.benchmarks import length as length_benchmark
from tasks.experiments.benchmarks import measuring
from tasks.experiments.benchmarks.length import measure_cell, reason_to_leave_out
from tasks.experiments.benchmarks.length_models import measure
from tasks.experiments.benchmarks.measuring import seconds_of

MODEL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
NER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_size": 8}
LENGTHS = [64, 128, 256, 512, 1024]


def run(argv):
    return main(["benchmark", "length", *argv])


def power_law(task, job, options, length, device):
    """In place of a measurement: softmax quadratic from 1 s, linear from 4 s, at 64 tokens."""
    ratio = length / 64
    seconds = ratio**2 if options["attention"] == "softmax" else 4 * ratio
    return {"seconds": seconds, "peak_mb": round(500 + 10 * seconds), "idle_mb": 500}


def rows_of(folder):
    return json.loads((folder / "out" / "speed.json").read_text(encoding="utf-8"))


@pytest.fixture
def plan_file(tmp_path, monkeypatch):
    monkeypatch.setattr(length_benchmark, "measure_cell", power_law)
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


def test_table_page_and_picture_hold_what_was_measured(plan_file, tmp_path):
    assert run([str(plan_file)]) == 0
    page = (tmp_path / "out" / "speed.md").read_text(encoding="utf-8")
    assert "| train | softmax | 1024 | 2.00 | 2.00 |  |  |" in page
    assert "| train | linear | 1024 | 1.00 | 1.00 | 0.25 at 1024 | 0.25 at 1024 |\n" in page
    rows = rows_of(tmp_path)
    assert len(rows) == 2 * 2 * len(LENGTHS) and rows[1] == {
        "job": "train", "variant": "softmax", "length": 128, "seconds": 4.0, "peak_mb": 540, "idle_mb": 500,
        "left_out": "", "options": {"device": "cpu", "task": "classification", **MODEL, "attention": "softmax"},
    }  # fmt: skip
    table = (tmp_path / "out" / "speed.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == 1 + len(rows) and table[2] == "train,softmax,128,4.0,540,500,"
    assert (tmp_path / "out" / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_finished_cells_are_not_measured_again_and_lengths_left_out_are_judged_anew(plan_file, monkeypatch):
    measured = []

    def measure(task, job, options, length, device):
        measured.append((job, options["attention"], length))
        if len(measured) == 12:
            raise KeyboardInterrupt
        return power_law(task, job, options, length, device)

    monkeypatch.setattr(length_benchmark, "measure_cell", measure)
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
    def measure(*given):
        if given[3] == 512:
            raise InputError("its process failed with status -9: no message")
        return power_law(*given)

    monkeypatch.setattr(length_benchmark, "measure_cell", measure)
    assert run([str(plan_file)]) == 0
    assert [row["left_out"] for row in rows_of(tmp_path)[:5]] == [
        "", "", "", "its process failed with status -9: no message", "a shorter text is left out",
    ]  # fmt: skip


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
    result = measure(task, job, options, 64, "cpu")
    assert result["seconds"] > 0 and 10 < result["idle_mb"] <= result["peak_mb"] < 100_000


def test_measurement_in_its_own_process_says_why_it_fails():
    assert measure_cell("classification", "predict", MODEL, 64, "cpu").keys() == {"seconds", "peak_mb", "idle_mb"}
    with pytest.raises(InputError, match="its process failed with status 1: ValueError"):
        measure_cell("classification", "predict", {**MODEL, "hidden_size": 15}, 64, "cpu")


@pytest.mark.parametrize("seconds, counts", [([9, 4], 2), ([2, 1.5, 3], 3), ([1, 4.5], 2)])
def test_short_calls_are_repeated_and_the_first_is_never_alone(seconds, counts, monkeypatch):
    now, left = 0.0, list(seconds)

    def call():
        nonlocal now
        now += left.pop(0)

    monkeypatch.setattr(measuring.time, "perf_counter", lambda: now)
    assert seconds_of(call, least_runs=2, most_runs=3, enough_seconds=5.0) == seconds and counts == len(seconds)


@pytest.mark.parametrize("memory, seconds, said", [(1, 1e9, "2 GB foreseen"), (1e9, 30, "64 s foreseen"), (9, 99, "")])
def test_a_length_is_left_out_by_the_power_law_of_the_last_two(memory, seconds, said):
    known = [(64, 1.0, 100), (128, 4.0, 199), (256, 16.0, 595)]
    assert reason_to_leave_out(known, 512, {"memory_limit": memory, "time_limit": seconds}) == said
    assert reason_to_leave_out(known[:2], 512, {"memory_limit": 0, "time_limit": 0}) == ""


@pytest.mark.parametrize(
    "keys, said",
    [
        ({"lengths": [128, 64]}, "whole numbers that rise"),
        ({"lengths": ["a"]}, "whole numbers that rise"),
        ({"lengths": 64}, "lengths is 64; it has to be a list"),
        ({"model": ["x"]}, "model is ['x']; it has to be a mapping"),
        ({"variants": {"softmax": None}}, "variant softmax is None, not a mapping"),
        ({"variants": {"softmax": {"atention": "linear"}}}, "no option 'atention'; the nearest is 'attention'"),
        ({"variants": {"softmax": {"attention": "lineer"}}}, "attention must be one of softmax, linear, window"),
        ({"task": "x"}, "task is 'x'; it has to be one of classification, ner"),
        ({"task": "ner", "model": NER, "variants": {"softmax": {"max_span_length": 9}}}, "must be 10 or more"),
        ({"reference": "x"}, "the reference 'x'"),
        ({"model": {"hidden_size": "16"}}, "hidden_size"),
        ({"unknown": 1}, "unknown key 'unknown'"),
    ],
)
def test_what_makes_no_sense_is_one_line(plan_file, keys, said, capsys, tmp_path):
    assert run([str(change(plan_file, **keys))]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_rows_of_other_variants_stay_and_other_options_are_refused(plan_file, tmp_path, capsys):
    assert run([str(plan_file)]) == 0
    more = {"softmax": {"attention": "softmax"}, "mixed": {"attention": "linear"}}
    assert run([str(change(plan_file, variants=more))]) == 0
    assert {row["variant"] for row in rows_of(tmp_path)} == {"softmax", "mixed", "linear"}
    table = (tmp_path / "out" / "speed.csv").read_bytes()
    change(plan_file, model={**MODEL, "hidden_size": 32})
    assert run([str(plan_file)]) == 2
    assert "softmax was run with hidden_size 16, and the plan now has 32" in capsys.readouterr().err
    assert (tmp_path / "out" / "speed.csv").read_bytes() == table
    assert run([str(plan_file), "--output_dir", str(tmp_path / "other")]) == 0
