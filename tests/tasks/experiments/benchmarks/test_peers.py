"""The sides of ``benchmark peers``: their turns, their numbers, the table."""

import itertools
import json
import mmap
import os
from types import SimpleNamespace

import numpy as np
import pytest

from paddle_rope.native.library import library
from paddle_rope.native.products import why_no_bfloat16
from tasks.commands.main import main
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.peers import as_table, measure_in_turns, responder

# Python of an environment of the dependency group peers
PEER_PYTHON = os.environ.get("PEER_PYTHON")
ENCODER = {"do": "encoder", "folder": "x"}


def told(name, turns, output=0.0):
    """A worker that notes its turns, each a second longer than the one before, and computes what it is told."""
    seconds = itertools.count(1)

    def ask(do, job=None, **request):
        turns.append((name, job or do))
        if do != "run":
            return {"output": [output]}
        now = next(seconds)
        return {"processor_seconds": now, "seconds": 2 * now, "megabytes": 100}

    return SimpleNamespace(ask=ask)


def test_sides_take_turns_and_the_warm_up_does_not_count():
    turns = []
    workers = {name: told(name, turns) for name in ("native", "paddlenlp")}
    measured = measure_in_turns(workers, ENCODER, rounds=1)
    assert turns[:2] == [("native", "encoder"), ("paddlenlp", "encoder")]
    assert turns[2:] == 2 * [(name, job) for job in ("train", "predict") for name in workers]
    assert [turn["processor_seconds"] for turn in measured["train"]["native"] + measured["predict"]["native"]] == [3, 4]
    assert measure_in_turns(workers, {"do": "linear"}, rounds=1)["attend"].keys() == {"native"}


@pytest.mark.parametrize("name, good, bad", [("huggingface", 1.00001, 1.01), ("huggingface_bfloat16", 1.01, 1.2)])
def test_a_side_with_other_numbers_is_refused(name, good, bad):
    measure_in_turns({"plain": told("plain", [], 1.0), name: told(name, [], good)}, ENCODER, rounds=0)
    for output in (bad, float("nan")):
        with pytest.raises(InputError, match="encoder differs"):
            measure_in_turns({"plain": told("plain", [], 1.0), name: told(name, [], output)}, ENCODER, rounds=0)


def test_table_has_medians_of_ratios_of_the_same_round_and_peaks_of_training():
    def turns(*seconds, megabytes=None):
        return [{"processor_seconds": a, "seconds": b, "megabytes": megabytes} for a, b in zip(seconds, seconds[::-1])]

    both = {"native": turns(1.0, 10.0, 2.0, megabytes=1500.4), "huggingface": turns(2.0, 15.0, 2.0)}
    table = as_table([{"size": "4x256,2x3", "job": job, "turns": both} for job in ("train", "predict")])
    assert [line.count("1.50 (1.50)") for line in table.splitlines()[2:]] == [1, 1]
    assert table.count("2,000.0 ms") == 2 and table.count("2,000.0 ms, 1,500 MB") == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="only Linux tells the peak of a part of a run")
def test_peak_is_that_of_the_job_beyond_the_memory_before():
    def take():
        np.frombuffer(mmap.mmap(-1, 60 << 20), np.uint8)[:] = 1  # 60 MB, which no allocator keeps

    class Taking:
        def encoder(self):
            return {"little": lambda: None, "much": take}, []

    respond = responder(Taking())
    assert respond("encoder") == {"output": []}
    assert 59 < respond("run", job="much")["megabytes"] < 80
    assert respond("run", job="little")["megabytes"] < 20  # not that of the run before


@pytest.mark.slow
def test_all_sides_compute_the_same_and_are_in_the_file(tmp_path, capsys):
    """With Hugging Face only where PEER_PYTHON names a Python with PyTorch."""
    file = tmp_path / "peers.json"
    argv = ["--sizes", "1x64,2x3", "--linear", "5", "--rounds", "1", "--output", str(file)]
    assert main(["benchmark", "peers", *argv, *(["--peer_python", PEER_PYTHON] if PEER_PYTHON else [])]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [row["job"] for row in rows] == ["train", "predict", "attend"]
    linear = {"plain", *(["native"] if library() else []), *(["huggingface"] if PEER_PYTHON else [])}
    others = {"paddlenlp", "paddlenlp_as_installed", *(["huggingface_bfloat16"] if PEER_PYTHON else [])}
    others |= {"native_bfloat16"} if why_no_bfloat16() is None else set()
    assert [set(row["turns"]) for row in rows] == [linear | others, linear | others, linear]
    assert PEER_PYTHON or "Hugging Face is left out" in capsys.readouterr().out
