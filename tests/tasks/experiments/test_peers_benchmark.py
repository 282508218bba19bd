"""paddle-rope benchmark peers."""

import contextlib
import json
import mmap
import os

import numpy as np
import pytest

from paddle_rope.native.dispatch import plain_forms
from paddle_rope.native.library import library
from paddle_rope.native.products import why_no_bfloat16
from tasks.commands.main import main
from tasks.common.errors import InputError
from tasks.experiments.benchmarks import peers
from tasks.experiments.benchmarks.peers import Responder, as_table, check_outputs, measure_in_turns, start
from tasks.experiments.benchmarks.worker import Worker

# Python of an environment of the dependency group peers
PEER_PYTHON = os.environ.get("PEER_PYTHON")


class Told:
    """A worker that needs as many seconds as told, one after another, and notes its turns."""

    def __init__(self, name, seconds, turns):
        self.name, self.seconds, self.turns = name, iter(seconds), turns

    def ask(self, do, **request):
        self.turns.append((self.name, request.get("job", do)))
        if do != "run":
            return {}
        seconds = next(self.seconds)
        return {"processor_seconds": seconds, "seconds": 2 * seconds, "megabytes": 100 * seconds}


def test_sides_take_turns_and_the_warm_up_does_not_count():
    turns = []
    workers = {"native": Told("a", [9, 9, 1, 2], turns), "plain": Told("b", [8, 8, 3, 4], turns)}
    measured = measure_in_turns(workers, {"do": "encoder", "layers": 1}, rounds=1)
    assert turns[:2] == [("a", "encoder"), ("b", "encoder")]
    assert turns[2:] == 2 * [("a", "train"), ("b", "train"), ("a", "predict"), ("b", "predict")]
    assert measured["train"]["native"] == [{"processor_seconds": 1, "seconds": 2, "megabytes": 100}]
    assert measured["predict"]["plain"][0]["processor_seconds"] == 4


def test_sides_without_linear_attention_have_no_turn_in_it():
    turns = []
    names = ("plain", "paddlenlp", "paddlenlp_as_installed", "native_bfloat16", "huggingface_bfloat16")
    workers = {name: Told(name, [1, 1], turns) for name in names}
    assert list(measure_in_turns(workers, {"do": "linear", "heads": 1, "length": 2}, rounds=1)) == ["attend"]
    assert {name for name, _ in turns} == {"plain"}


def _turns(*processor_seconds, megabytes=None):
    clock = processor_seconds[::-1]
    return [{"processor_seconds": a, "seconds": b, "megabytes": megabytes} for a, b in zip(processor_seconds, clock)]


def test_table_has_medians_of_ratios_of_the_same_round_and_peaks_of_training():
    train = {"native": _turns(1.0, 10.0, 2.0, megabytes=1500.4), "huggingface": _turns(2.0, 15.0, 2.0)}
    rows = [
        {"size": "4x256,2x3", "job": "train", "turns": train},
        {"size": "4x256,2x3", "job": "predict", "turns": train},
        {"size": "1x512", "job": "attend", "turns": {"plain": _turns(0.0005), "huggingface": _turns(0.001)}},
    ]
    assert as_table(rows).splitlines() == [
        "| size | job | ours, native operators | Hugging Face | ours, plain |",
        "| --- | --- | --- | --- | --- |",
        "| 4x256,2x3 | training | 2,000.0 ms, 1,500 MB | 1.50 (1.50) |  |",
        "| 4x256,2x3 | inference | 2,000.0 ms | 1.50 (1.50) |  |",
        "| 1x512 | linear attention, forward and backward |  | 2.00 (2.00) | 0.5 ms |",
    ]


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="only Linux tells the peak of a part of a run")
def test_peak_is_that_of_the_job_beyond_what_was_there_before():
    def take():
        np.frombuffer(mmap.mmap(-1, 60 << 20), np.uint8)[:] = 1  # 60 MB, which no allocator keeps

    class Taking:
        def encoder(self):
            return {"little": lambda: None, "much": take}

    respond = Responder(Taking())
    respond("encoder")
    assert 59 < respond("run", job="much")["megabytes"] < 80
    assert respond("run", job="little")["megabytes"] < 20  # not that of the run before


def test_a_side_that_computes_something_else_is_named():
    class Fixed:
        def __init__(self, value):
            self.value = value

        def ask(self, **request):
            return {"encoder": [[self.value]]}

    check_outputs({"plain": Fixed(1.0), "huggingface": Fixed(1.0)})
    for other in (1.1, float("nan")):
        with pytest.raises(InputError, match="Hugging Face: encoder differs from ours"):
            check_outputs({"plain": Fixed(1.0), "huggingface": Fixed(other)})
    check_outputs({"plain": Fixed(1.0), "huggingface_bfloat16": Fixed(1.02)})  # rounds
    with pytest.raises(InputError, match="Hugging Face, bfloat16: encoder differs"):
        check_outputs({"plain": Fixed(1.0), "huggingface_bfloat16": Fixed(1.2)})


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--sizes", "4x256"], "--sizes 4x256: expected layers x hidden size"),
        (["--sizes", "4x250,1x1"], "a multiple of 64"),
        (["--rounds", "0"], "--rounds: expected a whole number, 1 or more, got 0"),
        (["--threads", "0"], "--threads: expected a whole number"),
        (["--linear", "-3"], "--linear: expected a whole number"),
        (["--sides", "huggingface"], "--sides huggingface: add native or plain"),
    ],
)
def test_wrong_numbers_are_named(argv, message, capsys):
    assert main(["benchmark", "peers", *argv]) == 2
    assert message in capsys.readouterr().err


class Here:
    """A worker in the process of the test, but for PyTorch."""

    def __new__(cls, module, name, **options):
        return Worker(module, name, **options) if "huggingface" in name else super().__new__(cls)

    def __init__(self, module, name, PADDLE_ROPE_NATIVE=None, **options):
        self.is_plain = PADDLE_ROPE_NATIVE == "0"
        try:
            self.first, self.respond = start(name)
        except ImportError as error:
            raise InputError(str(error)) from None

    def ask(self, **request):
        with plain_forms() if self.is_plain else contextlib.nullcontext():
            return json.loads(json.dumps(self.respond(**request)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing to end."""


def test_all_sides_compute_the_same_and_are_in_table_and_file(tmp_path, capsys, monkeypatch):
    """Against Hugging Face only where PEER_PYTHON names a Python with PyTorch."""
    monkeypatch.setattr(peers, "Worker", Here)
    argv = ["--sizes", "1x64,2x3", "--linear", "5", "--rounds", "1", "--output", str(tmp_path / "peers.json")]
    assert main(["benchmark", "peers", *argv, *(["--peer_python", PEER_PYTHON] if PEER_PYTHON else [])]) == 0
    found = json.loads((tmp_path / "peers.json").read_text())
    jobs = [(row["size"], row["job"]) for row in found["rows"]]
    assert jobs == [("1x64,2x3", "train"), ("1x64,2x3", "predict"), ("1x5", "attend")]
    paddlenlp = {"paddlenlp", "paddlenlp_as_installed"}
    in_torch = {"huggingface", "huggingface_bfloat16"} if PEER_PYTHON else set()
    rounded = {"native_bfloat16"} if why_no_bfloat16() is None else set()
    sides = {"plain", *paddlenlp, *rounded, *in_torch, *(["native"] if library() else [])}
    assert set(found["versions"]) == set(found["rows"][0]["turns"]) == sides
    assert set(found["rows"][2]["turns"]) == sides - paddlenlp - rounded - {"huggingface_bfloat16"}
    printed = capsys.readouterr().out
    assert "| PaddleNLP |" in printed
    if not PEER_PYTHON:
        assert "note: Hugging Face is left out: it needs --peer_python" in printed
        pytest.skip("the other sides agree; PyTorch is not measured: PEER_PYTHON names no Python that has it")


def test_only_the_sides_that_are_named_run(monkeypatch):
    monkeypatch.setattr(peers, "Worker", Here)
    rows = peers.measure_peers(["1x64,2x3"], rounds=1, sides=("plain", "paddlenlp"))["rows"]
    assert all(row["turns"].keys() == {"plain", "paddlenlp"} for row in rows)
