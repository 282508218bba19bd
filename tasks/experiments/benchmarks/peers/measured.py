"""Measures the sides in turns and compares them."""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.common.errors import InputError
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks.sizes import HEAD_SIZE, encoder_settings, read_size
from tasks.experiments.benchmarks.worker import Worker

TITLES = {
    "native": "ours, native operators",
    "plain": "ours, plain",
    "native_bfloat16": "ours, bfloat16",
    "paddlenlp": "PaddleNLP with our settings",
    "paddlenlp_as_installed": "PaddleNLP",
    "huggingface": "Hugging Face",
    "huggingface_bfloat16": "Hugging Face, bfloat16",
}
# What our command sets for Paddle (paddle_rope.machine); the others run as they are installed.
OUR_SETTINGS = ("FLAGS_use_stride_kernel", "MKL_DEBUG_CPU_TYPE")
PEERS = ("paddlenlp_as_installed", "huggingface", "huggingface_bfloat16")
IN_TORCH = ("huggingface", "huggingface_bfloat16")
ENCODERS_ALONE = ("paddlenlp", "paddlenlp_as_installed", "native_bfloat16", "huggingface_bfloat16")
JOBS = {"train": "training", "predict": "inference", "attend": "linear attention, forward and backward"}
LINEAR_HEADS = 4
WARM_UP = 1  # rounds before those that count
REST = 0.3  # seconds between turns with several threads: those of OpenMP spin for 200 ms after their work
TOLERANCE = 1e-4  # of outputs of about 1
BFLOAT16_TOLERANCE = 0.1
CLOCKS = ("processor_seconds", "seconds")


def measure_peers(
    sizes: Sequence[str],
    linear: Sequence[int] = (),
    threads: Sequence[int] = (1,),
    rounds: int = 5,
    peer_python: str | None = None,
    sides: Sequence[str] = tuple(TITLES),
) -> dict[str, Any]:
    """Measure the sides, each in its own process, in turns: A B C D A B C D ...

    Args:
        sizes: of encoders, such as ``"4x256,32x40"``: layers x hidden size, texts x length.
        linear: lengths of one text for linear attention by itself.
        threads: numbers of threads, one after another.
        rounds: turns of each side, after one to warm up.
        peer_python: Python of an environment with the packages of ``requirements-peers.txt``; None leaves Hugging
            Face and PyTorch out.
        sides: names of :data:`TITLES`; all are in memory together.

    Returns:
        dict with ``versions`` and ``notes`` (list of str: what was left out and why), and ``rows``, dicts with
        ``threads``, ``size``, ``job`` (a key of ``JOBS``), ``times`` (side -> clock of ``CLOCKS`` -> seconds of each
        round), ``ratios`` (:func:`ratios_of`) and ``megabytes`` (side -> the highest peak of all rounds; None where
        the system does not tell it).

    Raises:
        InputError: a size or number is wrong, a side fails, or computes something else.
    """
    for name, value in (("rounds", rounds), *(("threads", n) for n in threads), *(("linear", n) for n in linear)):
        if value < 1:
            raise InputError(f"--{name} {value}: must be at least 1")
    names = ("layers", "hidden", "texts", "length")
    cases = [(size, {"do": "encoder", **dict(zip(names, read_size(size)))}) for size in sizes]
    cases += [(f"1x{length}", {"do": "linear", "heads": LINEAR_HEADS, "length": length}) for length in linear]
    notes: list[str] = []
    versions, rows = {}, []
    for count in threads:
        with contextlib.ExitStack() as stack:
            workers = _started(stack, sides, count, peer_python, notes)
            check_outputs(workers)
            versions = {name: worker.first["version"] for name, worker in workers.items()}
            for size, case in cases:
                for job, turns in measure_in_turns(workers, case, rounds, REST if count > 1 else 0).items():
                    times, megabytes = times_of(turns), megabytes_of(turns)
                    row = {"threads": count, "size": size, "job": job, "times": times, "ratios": ratios_of(times)}
                    rows.append({**row, "megabytes": megabytes})
    return {"versions": versions, "notes": list(dict.fromkeys(notes)), "rows": rows}


def _started(stack, sides, threads, peer_python, notes):
    """Workers by the names of ``TITLES``, those left out but for a note."""
    workers = {}
    for name, title in ((name, title) for name, title in TITLES.items() if name in sides):
        settings: dict = {"OMP_NUM_THREADS": str(threads)}
        if name == "plain":
            settings["PADDLE_ROPE_NATIVE"] = "0"
        if name in PEERS:
            settings.update(dict.fromkeys(OUR_SETTINGS))
        try:
            if name in IN_TORCH and not peer_python:
                raise InputError("it wants --peer_python")
            python = peer_python if name in IN_TORCH else sys.executable
            workers[name] = Worker(python, ["-m", "tasks.experiments.benchmarks.peers.side", name], settings)
        except InputError as error:
            notes.append(f"{title} is left out: {error}")
        else:
            stack.callback(workers[name].end)
    return workers


def check_outputs(workers: dict[str, Any]) -> None:
    """Let all compute an encoder with the same weights, and linear attention, at a small size.

    Raises:
        InputError: one gives other numbers than ours.
    """
    import paddle

    from paddle_rope import RoFormerConfig, RoFormerModel
    from paddle_rope.roformer.checkpoints import write_huggingface

    random = np.random.default_rng(0)
    settings = encoder_settings(layers=2, hidden=2 * HEAD_SIZE)
    ids = random.integers(1, settings["vocab_size"], (2, 9)).tolist()
    qkv = random.standard_normal((3, 1, 9, 2 * HEAD_SIZE)).round(3).tolist()
    paddle.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_huggingface(RoFormerModel(RoFormerConfig(**settings)), folder)
        request = json.dumps({"do": "outputs", "folder": folder, "ids": ids, "linear": qkv})
        outputs = {name: worker.ask(request) for name, worker in workers.items()}
    wanted = outputs[_ours(outputs)]
    for name, found in outputs.items():
        for kind, values in found.items():
            difference = float(np.abs(np.array(values) - np.array(wanted[kind])).max())
            if not difference < (BFLOAT16_TOLERANCE if "bfloat16" in name else TOLERANCE):
                raise InputError(
                    f"{TITLES[name]} computes something else ({kind}): its numbers differ from ours by up to "
                    f"{difference:.2g}"
                )


def measure_in_turns(
    workers: dict[str, Any], case: dict[str, Any], rounds: int, rest: float = 0.0
) -> dict[str, dict[str, list[dict]]]:
    """job -> side -> what it measured in each round, ``rest`` seconds before each turn; PaddleNLP has no linear
    attention, which has no bfloat16 here."""
    running = {name: it for name, it in workers.items() if case["do"] != "linear" or name not in ENCODERS_ALONE}
    for worker in running.values():
        worker.ask(json.dumps(case))
    jobs = ("attend",) if case["do"] == "linear" else ("train", "predict")
    turns: dict = {job: {name: [] for name in running} for job in jobs}
    for _ in range(WARM_UP + rounds):
        for job in jobs:
            for name, worker in running.items():
                time.sleep(rest)
                turns[job][name].append(worker.ask(json.dumps({"do": "run", "job": job})))
    return {job: {name: measured[WARM_UP:] for name, measured in of_job.items()} for job, of_job in turns.items()}


def times_of(turns: dict[str, list[dict]]) -> dict[str, dict[str, list[float]]]:
    """side -> clock -> seconds of each round."""
    return {name: {clock: [turn[clock] for turn in of_side] for clock in CLOCKS} for name, of_side in turns.items()}


def megabytes_of(turns: dict[str, list[dict]]) -> dict[str, float | None]:
    """side -> the highest peak of all rounds."""
    peaks = {name: [turn["megabytes"] for turn in of_side] for name, of_side in turns.items()}
    return {name: None if None in of_side else max(of_side) for name, of_side in peaks.items()}


def ratios_of(times: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    """side -> clock -> its seconds over ours in the same round, the median of all rounds. Ours are the native operators
    or, where they are not built, the plain forms."""
    ours = times[_ours(times)]
    return {
        name: {
            clock: statistics.median(theirs / our for theirs, our in zip(of_side[clock], ours[clock]))
            for clock in CLOCKS
        }
        for name, of_side in times.items()
        if of_side is not ours
    }


def _ours(times):
    return "native" if "native" in times else "plain"


def as_table(measured: dict[str, Any]) -> str:
    """The times that :func:`measure_peers` returns, as a Markdown table: ratios of processor time, those of the clock
    in brackets."""
    rows = []
    for row in measured["rows"]:
        ours = _ours(row["times"])
        milliseconds = 1000 * statistics.median(row["times"][ours]["processor_seconds"])
        cells = {"threads": row["threads"], "size": row["size"], "job": JOBS[row["job"]]}
        cells[f"{TITLES[ours]}, ms"] = f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.1f}"
        for name, ratio in row["ratios"].items():
            cells[f"{TITLES[name]} / ours"] = f"{ratio['processor_seconds']:.2f} ({ratio['seconds']:.2f})"
        rows.append(cells)
    return as_markdown(rows, list(dict.fromkeys(name for row in rows for name in row)))


def as_memory_table(measured: dict[str, Any]) -> str:
    """The peaks that :func:`measure_peers` returns, as a Markdown table in MB; without inference, which has its turns
    after training, in memory that training has left."""
    rows = []
    for row in (row for row in measured["rows"] if row["job"] != "predict"):
        peaks = {f"{TITLES[name]}, MB": peak and f"{peak:,.0f}" for name, peak in row["megabytes"].items()}
        rows.append({"threads": row["threads"], "size": row["size"], "job": JOBS[row["job"]], **peaks})
    return as_markdown(rows, list(dict.fromkeys(name for row in rows for name in row)))
