"""paddle-rope benchmark native."""

import json

import pytest
from PIL import Image

from paddle_rope.native.products import why_no_bfloat16
from tasks.commands.benchmark import benchmark
from tasks.common.errors import InputError
from tasks.experiments.benchmarks import native
from tasks.experiments.benchmarks.native import _medians, as_table


@pytest.mark.parametrize("size", ["4x256", "1x64,2x0", "1x65,2x3", "1x64,2x3,4"])
def test_sizes_that_cannot_be_read_are_named(size):
    with pytest.raises(InputError, match=f"--sizes {size}: give layers x hidden size"):
        benchmark(["native", "--sizes", size])


def test_table_and_file_have_a_row_for_each_size_and_attention(tmp_path, capsys):
    words = ["--sizes", "1x64,2x3", "--attention", "softmax", "linear-near", "--rounds", "1"]
    files = ["--output", str(tmp_path / "native.json"), "--figure", str(tmp_path / "native.png")]
    assert benchmark(["native", *words, *files]) == 0
    rows = json.loads((tmp_path / "native.json").read_text())["rows"]
    assert [(row["size"], row["variant"]) for row in rows] == [("1x64,2x3", "softmax"), ("1x64,2x3", "linear-near")]
    sides = {"native", *(["bfloat16"] if why_no_bfloat16() is None else [])}
    for of_job in (row[job] for row in rows for job in ("train", "predict")):
        assert of_job["ratios"].keys() == sides and of_job["ms"].keys() == {"plain", *sides}
        assert all(value > 0 for value in (*of_job["ratios"].values(), *of_job["ms"].values()))
    assert Image.open(tmp_path / "native.png").size[0] > 500
    printed = capsys.readouterr().out
    assert printed.count("| 1x64,2x3 |") == 2


def test_without_operators_it_says_so(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: None)
    with pytest.raises(InputError, match="native operators"):
        benchmark(["native", "--sizes", "1x64,2x3"])


def _row(size, **ms):
    of_job = {"ms": ms, "ratios": {name: ms["plain"] / value for name, value in ms.items() if name != "plain"}}
    return {"size": size, "variant": "softmax", "train": of_job, "predict": of_job}


def test_table_of_given_numbers():
    assert as_table([_row("4x256,1x512", plain=2400.0, native=1200.0, bfloat16=600.0)]).splitlines() == [
        "| layers x hidden, texts x length | attention | training: plain / native | training: plain / bfloat16 | "
        "inference: plain / native | inference: plain / bfloat16 |",
        "|---|---|---|---|---|---|",
        "| 4x256,1x512 | softmax | 2.00 (1,200 ms) | 4.00 (600 ms) | 2.00 (1,200 ms) | 4.00 (600 ms) |",
    ]


def test_ratios_are_medians_over_rounds():
    medians = _medians({"plain": [2.0, 20.0, 3.0], "native": [1.0, 20.0, 1.0]})
    assert medians == {"ms": {"plain": 3.0, "native": 1.0}, "ratios": {"native": 2.0}}
