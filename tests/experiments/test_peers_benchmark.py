"""paddle-rope benchmark peers."""

import contextlib
import json
import mmap
import os
import sys

import numpy as np
import pytest

from paddle_rope.native.dispatch import plain_forms
from paddle_rope.native.library import library
from paddle_rope.native.products import why_no_bfloat16
from tasks.commands.benchmark import benchmark
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.peers import measured
from tasks.experiments.benchmarks.peers.measured import (
    as_memory_table,
    as_table,
    check_outputs,
    measure_in_turns,
    megabytes_of,
    ratios_of,
    times_of,
)
from tasks.experiments.benchmarks.peers.side import Respond, open_side
from tasks.experiments.benchmarks.worker import Worker

# Python of an environment of requirements-peers.txt
PEER_PYTHON = os.environ.get("PEER_PYTHON")


class Told:
    """A worker that needs as many seconds as told, one after another, and notes its turns."""

    def __init__(self, name, seconds, turns):
        self.name, self.seconds, self.turns = name, iter(seconds), turns

    def ask(self, line):
        request = json.loads(line)
        self.turns.append((self.name, request.get("job", request["do"])))
        if request["do"] != "run":
            return {}
        seconds = next(self.seconds)
        return {"processor_seconds": seconds, "seconds": 2 * seconds, "megabytes": 100 * seconds}


def test_sides_take_turns_and_the_warm_up_does_not_count():
    turns = []
    workers = {"native": Told("a", [9, 9, 1, 2], turns), "plain": Told("b", [8, 8, 3, 4], turns)}
    measured = measure_in_turns(workers, {"do": "encoder", "layers": 1}, rounds=1)
    times = {job: times_of(of_job) for job, of_job in measured.items()}
    assert turns[:2] == [("a", "encoder"), ("b", "encoder")]
    assert turns[2:] == 2 * [("a", "train"), ("b", "train"), ("a", "predict"), ("b", "predict")]
    assert times["train"] == {
        "native": {"processor_seconds": [1], "seconds": [2]},
        "plain": {"processor_seconds": [3], "seconds": [6]},
    }
    assert times["predict"]["plain"]["processor_seconds"] == [4]
    assert megabytes_of(measured["predict"]) == {"native": 200, "plain": 400}


def test_sides_without_linear_attention_have_no_turn_in_it():
    turns = []
    names = ("plain", "paddlenlp", "paddlenlp_as_installed", "native_bfloat16", "huggingface_bfloat16")
    workers = {name: Told(name, [1, 1], turns) for name in names}
    assert list(measure_in_turns(workers, {"do": "linear", "heads": 1, "length": 2}, rounds=1)) == ["attend"]
    assert {name for name, _ in turns} == {"plain"}


def _times(**seconds):
    return {name: {"processor_seconds": of_side, "seconds": of_side[::-1]} for name, of_side in seconds.items()}


def test_only_the_sides_that_are_asked_for_run(monkeypatch):
    monkeypatch.setattr(measured, "Worker", Here)
    rows = measured.measure_peers(["1x64,2x3"], rounds=1, sides=("plain", "paddlenlp"))["rows"]
    assert all(row["times"].keys() == {"plain", "paddlenlp"} for row in rows)
    with pytest.raises(InputError, match="--rounds 0"):  # the command knows all sides
        benchmark(["peers", "--sides", *measured.TITLES, "--rounds", "0"])


def test_ratios_are_medians_over_rounds_of_the_same_disturbance():
    ratios = ratios_of(_times(native=[1.0, 10.0, 2.0], huggingface=[2.0, 15.0, 2.0]))
    assert ratios == {"huggingface": {"processor_seconds": 1.5, "seconds": 1.5}}
    assert ratios_of(_times(plain=[1.0], paddlenlp=[3.0]))["paddlenlp"]["seconds"] == 3.0  # without native operators


def test_table_of_given_numbers():
    train, attend = (_times(native=[0.1234], plain=[0.2468]), _times(native=[0.0005], huggingface=[0.001]))
    rows = [
        {"threads": 1, "size": "4x256,2x3", "job": "train", "times": train, "ratios": ratios_of(train)},
        {"threads": 2, "size": "1x512", "job": "attend", "times": attend, "ratios": ratios_of(attend)},
    ]
    assert as_table({"rows": rows}).splitlines() == [
        "| threads | size | job | ours, native operators, ms | ours, plain / ours | Hugging Face / ours |",
        "| ---: | --- | --- | --- | --- | --- |",
        "| 1 | 4x256,2x3 | training | 123 | 2.00 (2.00) |  |",
        "| 2 | 1x512 | linear attention, forward and backward | 0.5 |  | 2.00 (2.00) |",
    ]


def test_memory_table_is_of_the_highest_peaks_and_empty_where_none_are_known():
    turns = {"native": [{"megabytes": 1500.4}, {"megabytes": 12.0}], "plain": [{"megabytes": None}]}
    row = {"threads": 1, "size": "1x512", "job": "attend", "megabytes": megabytes_of(turns)}
    inference = {**row, "job": "predict"}  # in memory that training has left
    assert as_memory_table({"rows": [inference, row]}).splitlines() == [
        "| threads | size | job | ours, native operators, MB | ours, plain, MB |",
        "| ---: | --- | --- | --- | --- |",
        "| 1 | 1x512 | linear attention, forward and backward | 1,500 |  |",
    ]


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="only Linux tells the peak of a part of a run")
def test_peak_is_that_of_the_job_beyond_what_was_there_before():
    def take():
        np.frombuffer(mmap.mmap(-1, 60 << 20), np.uint8)[:] = 1  # 60 MB, which no allocator keeps

    class Taking:
        def encoder(self):
            return {"little": lambda: None, "much": take}

    respond = Respond(Taking())
    respond("encoder")
    assert 59 < respond("run", job="much")["megabytes"] < 80
    assert respond("run", job="little")["megabytes"] < 20  # not that of the run before


def test_a_side_that_computes_something_else_is_named():
    class Fixed:
        def __init__(self, value):
            self.value = value

        def ask(self, line):
            return {"encoder": [[self.value]]}

    check_outputs({"plain": Fixed(1.0), "huggingface": Fixed(1.0)})
    for other in (1.1, float("nan")):
        with pytest.raises(InputError, match=r"Hugging Face computes something else \(encoder\)"):
            check_outputs({"plain": Fixed(1.0), "huggingface": Fixed(other)})
    check_outputs({"plain": Fixed(1.0), "huggingface_bfloat16": Fixed(1.02)})  # rounds
    with pytest.raises(InputError, match="Hugging Face, bfloat16 computes something else"):
        check_outputs({"plain": Fixed(1.0), "huggingface_bfloat16": Fixed(1.2)})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sizes", "4x256"], "--sizes 4x256: give layers x hidden size"),
        (["--rounds", "0"], "--rounds 0: must be at least 1"),
        (["--threads", "0"], "--threads 0: must be at least 1"),
        (["--linear", "-3"], "--linear -3: must be at least 1"),
        (["--sides", "huggingface"], "--sides huggingface: add native or plain"),
    ],
)
def test_wrong_numbers_are_named(words, message):
    with pytest.raises(InputError, match=message):
        benchmark(["peers", *words])


def test_a_process_that_ends_says_why():
    with pytest.raises(InputError, match="its process failed with status 3: it is tired"):
        Worker(sys.executable, ["-c", "import sys; print('it is tired', file=sys.stderr); sys.exit(3)"], {})
    worker = Worker(sys.executable, ["-c", "print('{}', flush=True); input(); raise KeyError('gone')"], {})
    with pytest.raises(InputError, match="status 1: KeyError: 'gone'"):
        worker.ask("again")
    worker.end()


def test_a_variable_of_the_environment_can_be_taken_away(monkeypatch):
    monkeypatch.setenv("MKL_DEBUG_CPU_TYPE", "5")
    program = "import json, os; print(json.dumps({'all': [os.environ.get('MKL_DEBUG_CPU_TYPE'), os.environ['ADDED']]}))"
    worker = Worker(sys.executable, ["-c", program], {"MKL_DEBUG_CPU_TYPE": None, "ADDED": "1"})
    worker.end()
    assert worker.first == {"all": [None, "1"]}


def test_a_process_answers_each_request_and_what_libraries_print_is_no_answer():
    program = """
from tasks.experiments.benchmarks.peers import side

class Counting:
    version = "7"
    def encoder(self, layers):
        print("noise")
        return {"train": lambda: print("more noise")}

side.open_side = lambda name: Counting()
side.main(["counting"])
"""
    worker = Worker(sys.executable, ["-c", program], {})
    assert worker.first == {"version": "7"}
    assert worker.ask('{"do": "encoder", "layers": 2}') == {}
    assert set(worker.ask('{"do": "run", "job": "train"}')) == {"seconds", "processor_seconds", "megabytes"}
    worker.end()


class Here:
    """A worker in the process of the test, but for PyTorch."""

    def __new__(cls, python, words, settings):
        return Worker(python, words, settings) if "huggingface" in words[-1] else super().__new__(cls)

    def __init__(self, python, words, settings):
        try:
            side = open_side(words[-1])
        except ImportError as error:
            raise InputError(str(error)) from None
        self.is_plain, self.respond = settings.get("PADDLE_ROPE_NATIVE") == "0", Respond(side)
        self.first = {"version": side.version}

    def ask(self, line):
        with plain_forms() if self.is_plain else contextlib.nullcontext():
            return json.loads(json.dumps(self.respond(**json.loads(line))))

    def end(self):
        """Nothing to end."""


def test_all_sides_compute_the_same_and_are_in_table_and_file(tmp_path, capsys, monkeypatch):
    """Against Hugging Face only where PEER_PYTHON names a Python with PyTorch."""
    monkeypatch.setattr(measured, "Worker", Here)
    words = ["--sizes", "1x64,2x3", "--linear", "5", "--rounds", "1", "--output", str(tmp_path / "peers.json")]
    assert benchmark(["peers", *words, *(["--peer_python", PEER_PYTHON] if PEER_PYTHON else [])]) == 0
    found = json.loads((tmp_path / "peers.json").read_text())
    assert [(row["size"], row["job"]) for row in found["rows"]] == [
        ("1x64,2x3", "train"),
        ("1x64,2x3", "predict"),
        ("1x5", "attend"),
    ]
    paddlenlp = {"paddlenlp", "paddlenlp_as_installed"}
    in_torch = {"huggingface", "huggingface_bfloat16"} if PEER_PYTHON else set()
    rounded = {"native_bfloat16"} if why_no_bfloat16() is None else set()
    sides = {"plain", *paddlenlp, *rounded, *in_torch, *(["native"] if library() else [])}
    assert set(found["versions"]) == sides
    assert set(found["rows"][0]["times"]) == sides
    assert set(found["rows"][2]["times"]) == sides - paddlenlp - rounded - {"huggingface_bfloat16"}
    printed = capsys.readouterr().out
    assert "PaddleNLP / ours" in printed
    if not PEER_PYTHON:
        assert "note: Hugging Face is left out: it wants --peer_python" in printed
        pytest.skip("the other sides agree; PyTorch is not measured: PEER_PYTHON names no Python that has it")
