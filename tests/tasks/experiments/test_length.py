"""Time and memory against length: what is measured, left out, fitted and written."""

import json
import signal
from types import SimpleNamespace

import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.experiments import length as length_benchmark
from paddle_rope.tasks.experiments.length import (
    measure,
    measure_apart,
    read_length_plan,
    reason_to_leave_out,
    slope_rows,
)

MODEL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
NER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_size": 8}
LENGTHS = [64, 128, 256, 512, 1024]


@pytest.fixture
def cells(monkeypatch):
    """In place of measurements: softmax quadratic from 1 s, linear from 4 s, at 64 tokens. It notes what was measured,
    and what ``failures`` has for the number of a measurement is raised."""
    cells = SimpleNamespace(measured=[], failures={})

    def measure(task, job, options, length, device):
        cells.measured.append((job, options["attention"], length))
        if len(cells.measured) in cells.failures:
            raise cells.failures[len(cells.measured)]
        seconds = (length / 64) ** 2 if options["attention"] == "softmax" else 4 * length / 64
        return {"seconds": seconds, "peak_mb": round(500 + 10 * seconds), "idle_mb": 500}

    monkeypatch.setattr(length_benchmark, "measure_apart", measure)
    return cells


@pytest.fixture
def run(tmp_path, cells, write):
    """``run(key=value)``: the exit status of the plan with these keys."""
    plan = {
        **{"output_dir": str(tmp_path / "out"), "model": MODEL, "lengths": LENGTHS},
        **{"reference": "softmax", "memory_limit": 100, "time_limit": 10000},
        "variants": {"softmax": {"attention": "softmax"}, "linear": {"attention": "linear"}},
    }

    return lambda **keys: main(["benchmark", "length", str(write({**plan, **keys}, "speed.yaml"))])


def test_a_variant_whose_name_is_a_number_has_the_options_of_the_model(write):
    plan = {"output_dir": "out", "model": MODEL, "lengths": LENGTHS, "memory_limit": 1, "time_limit": 1}
    path = write({**plan, "reference": "softmax", "variants": {"softmax": {}, 64: {"attention": "window"}}}, "a.yaml")
    assert read_length_plan(path)["variants"] == {"softmax": MODEL, "64": {**MODEL, "attention": "window"}}


def rows_of(tmp_path):
    return json.loads((tmp_path / "out" / "speed.json").read_text(encoding="utf-8"))


def test_file_and_table_hold_the_measurements(run, tmp_path, capsys):
    assert run() == 0
    rows = rows_of(tmp_path)
    assert len(rows) == 2 * 2 * len(LENGTHS) and rows[1] == {
        **{"job": "train", "variant": "softmax", "length": 128, "seconds": 4.0, "peak_mb": 540, "idle_mb": 500},
        **{"left_out": "", "options": {"device": "cpu", "task": "classification", **MODEL, "attention": "softmax"}},
    }
    shown = capsys.readouterr().out
    assert "| job | variant | longest | time slope | memory slope | time share | memory share |" in shown
    assert shown.count("| softmax |") == 2 and shown.count("softmax  ") == 2 * len(LENGTHS)
    softmax, linear = slope_rows("softmax", rows)[:2]
    assert (softmax["time slope"], softmax["memory slope"], linear["time slope"]) == ("2.00", "2.00", "1.00")
    assert linear["time share"] == linear["memory share"] == "0.25 at 1024" and "time share" not in softmax


def test_finished_cells_are_not_measured_again_and_lengths_left_out_are_judged_anew(run, cells):
    cells.failures[12] = KeyboardInterrupt()
    assert run(time_limit=100) == 128 + signal.SIGINT
    first = cells.measured.copy()
    assert ("train", "softmax", 1024) not in first  # 256 s foreseen
    assert run() == 0
    again = cells.measured[len(first) :]
    assert ("train", "softmax", 1024) in again and not set(again) & set(first[:-1])
    assert len(again) + len(first) - 1 == 2 * 2 * len(LENGTHS)


@pytest.mark.slow
def test_measurement_gives_seconds_and_memory_or_says_why_it_fails():
    for job in ("train", "predict"):
        result = measure("ner", job, {**NER, "attention": "linear", "recompute": True}, 64, "cpu")
        assert (
            result["seconds"] > 0 < result["processor_seconds"]
            and 10 < result["idle_mb"] <= result["peak_mb"] < 100_000
        )
    assert measure_apart("classification", "predict", MODEL, 64, "cpu").keys() == result.keys()
    with pytest.raises(InputError, match="status 1: ValueError"):
        measure_apart("classification", "predict", {**MODEL, "hidden_size": 15}, 64, "cpu")


@pytest.mark.parametrize("memory, seconds, said", [(1, 1e9, "2 GB foreseen"), (1e9, 30, "64 s foreseen"), (9, 99, "")])
def test_a_length_is_left_out_by_the_power_law_of_the_last_two(memory, seconds, said):
    known = [(64, 1.0, 100), (128, 4.0, 199), (256, 16.0, 595)]
    assert reason_to_leave_out(known, 512, {"memory_limit": memory, "time_limit": seconds}) == said
    assert reason_to_leave_out(known[:2], 512, {"memory_limit": 0, "time_limit": 0}) == ""
