"""Our RoFormer next to PaddleNLP's and Hugging Face's, and our linear attention next to PyTorch's: ``benchmark peers``.

Each side has a worker and is an object with ``version`` and three methods (:mod:`paddle_sides`, :mod:`torch_side`):
``encoder`` and ``linear`` return jobs to be timed, by name; ``outputs`` returns numbers to compare with the other
sides'. No framework is imported before its turn.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tasks.common.errors import InputError
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks.measuring import forget_peak, peak_megabytes, timed
from tasks.experiments.benchmarks.worker import Worker


class Side(NamedTuple):
    """A model that is compared: its title; whether it is in PyTorch, has Paddle set up as our commands do, computes
    linear attention, rounds to bfloat16."""

    title: str
    in_torch: bool = False
    is_prepared: bool = True
    has_linear: bool = True
    is_rounded: bool = False


SIDES = {
    "native": Side("ours, native operators"),
    "plain": Side("ours, plain"),
    "native_bfloat16": Side("ours, bfloat16", has_linear=False, is_rounded=True),
    "paddlenlp": Side("PaddleNLP with our settings", has_linear=False),
    "paddlenlp_as_installed": Side("PaddleNLP", is_prepared=False, has_linear=False),
    "huggingface": Side("Hugging Face", in_torch=True, is_prepared=False),
    "huggingface_bfloat16": Side("Hugging Face, bfloat16", True, False, has_linear=False, is_rounded=True),
}
# What our command sets for Paddle (paddle_rope.machine), removed for sides that are not prepared.
OUR_SETTINGS = ("FLAGS_use_stride_kernel", "MKL_DEBUG_CPU_TYPE")
JOBS = {"train": "training", "predict": "inference", "attend": "linear attention, forward and backward"}
HEAD_SIZE, LINEAR_HEADS = 64, 4
REST = 0.3  # seconds between turns with several threads: those of OpenMP spin for 200 ms after their work
TOLERANCE, ROUNDED_TOLERANCE = 1e-4, 0.1  # of outputs of about 1


def encoder_settings(layers: int, hidden: int) -> dict[str, Any]:
    """Configuration of an encoder, by the names that Hugging Face, PaddleNLP and this library share."""
    return {
        "vocab_size": 3500,
        "embedding_size": hidden,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // HEAD_SIZE,
        "intermediate_size": 4 * hidden,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }


def start(name: str) -> tuple[dict[str, str], Callable[..., dict[str, Any]]]:
    """The worker's function: makes the jobs of a size, and times one of them at each further request."""
    if SIDES[name].in_torch:
        from tasks.experiments.benchmarks.torch_side import TorchSide as open_side
    else:
        from tasks.experiments.benchmarks.paddle_sides import open_side
    side = open_side(name)
    return {"version": side.version}, responder(side)


def responder(side: Any) -> Callable[..., dict[str, Any]]:
    """A function that answers requests: ``do`` is ``"outputs"``, ``"encoder"`` or ``"linear"`` for the method of the
    side, or ``"run"`` for the times of one job, with ``megabytes``, its peak beyond the libraries (None where the
    system cannot tell)."""
    jobs: dict[str, Callable[[], Any]] = {}
    before: list[int] = []

    def respond(do: str, **arguments: Any) -> dict[str, Any]:
        if do == "outputs":
            return side.outputs(**arguments)
        if do == "run":
            is_new_peak = forget_peak()
            times = timed(jobs[arguments["job"]])
            return {**times, "megabytes": peak_megabytes() - before[0] if is_new_peak else None}
        jobs.clear()  # frees the model before the next one is made
        if not before:
            forget_peak()
            before.append(peak_megabytes())
        jobs.update(getattr(side, do)(**arguments))
        return {}

    return respond


def measure_peers(
    sizes: Sequence[str],
    linear: Sequence[int] = (),
    threads: int = 1,
    rounds: int = 5,
    peer_python: str | None = None,
    sides: Sequence[str] = tuple(SIDES),
) -> dict[str, Any]:
    """Measure the sides in turns: A B C D A B C D ...

    Args:
        sizes: of encoders, such as ``"4x256,32x40"``: layers x hidden size, texts x length.
        linear: lengths of one text for linear attention by itself.
        threads: of each side.
        rounds: turns of each side, after one to warm up.
        peer_python: Python of an environment with PyTorch and transformers; None leaves them out.
        sides: names of :data:`SIDES`, ``native`` or ``plain`` among them; all are in memory together.

    Returns:
        dict with ``versions``, ``notes`` (list of str: what was left out and why), and ``rows``, dicts with ``size``,
        ``job`` (a key of ``JOBS``) and ``turns``: side -> what it measured in each round.

    Raises:
        InputError: a size is wrong, a side fails, or its numbers differ from ours.
    """
    cases = [(size, {"do": "encoder", **read_size(size)}) for size in sizes]
    cases += [(f"1x{length}", {"do": "linear", "heads": LINEAR_HEADS, "length": length}) for length in linear]
    notes, rows, workers = [], [], {}
    with contextlib.ExitStack() as stack:
        for name in (name for name in SIDES if name in sides):
            side = SIDES[name]
            settings: dict = {"OMP_NUM_THREADS": str(threads)}
            settings |= {"PADDLE_ROPE_NATIVE": "0"} if name == "plain" else {}
            settings |= {} if side.is_prepared else dict.fromkeys(OUR_SETTINGS)
            try:
                if side.in_torch and not peer_python:
                    raise InputError("it needs --peer_python")
                python = peer_python if side.in_torch else None
                worker = Worker("peers", name, python=python, is_prepared=side.is_prepared, **settings)
                workers[name] = stack.enter_context(worker)
            except InputError as error:
                notes.append(f"{side.title} is left out: {error}")
        check_outputs(workers)
        for size, case in cases:
            turns = measure_in_turns(workers, case, rounds, REST if threads > 1 else 0)
            rows += [{"size": size, "job": job, "turns": of_job} for job, of_job in turns.items()]
    versions = {name: worker.first["version"] for name, worker in workers.items()}
    return {"versions": versions, "notes": notes, "rows": rows}


def read_size(size: str) -> dict[str, int]:
    """``"4x256,32x40"`` -> ``layers``, ``hidden``, ``texts``, ``length``; raises InputError for anything else."""
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*),([1-9]\d*)x([1-9]\d*)", size)
    if not match or int(match[2]) % HEAD_SIZE:
        form = "layers x hidden size, texts x length such as 4x256,32x40"
        raise InputError(f"--sizes {size}: expected {form}, with a hidden size that is a multiple of {HEAD_SIZE}")
    return dict(zip(("layers", "hidden", "texts", "length"), map(int, match.groups())))


def check_outputs(workers: dict[str, Any]) -> None:
    """Let all sides compute an encoder with the same weights, and linear attention, at a small size; raises InputError
    if the numbers of one differ from ours."""
    import paddle

    from paddle_rope import RoFormerConfig, RoFormerModel
    from paddle_rope.roformer.checkpoints.huggingface import write_huggingface

    random = np.random.default_rng(0)
    settings = encoder_settings(layers=2, hidden=2 * HEAD_SIZE)
    ids = random.integers(1, settings["vocab_size"], (2, 9)).tolist()
    qkv = random.standard_normal((3, 1, 9, 2 * HEAD_SIZE)).round(3).tolist()
    paddle.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_huggingface(RoFormerModel(RoFormerConfig(**settings)), folder)
        request = {"do": "outputs", "folder": folder, "ids": ids, "linear": qkv}
        outputs = {name: worker.ask(**request) for name, worker in workers.items()}
    for name, found in outputs.items():
        for kind, values in found.items():
            difference = float(np.abs(np.array(values) - np.array(outputs[_ours(outputs)][kind])).max())
            if not difference < (ROUNDED_TOLERANCE if SIDES[name].is_rounded else TOLERANCE):  # True for a NaN
                raise InputError(f"{SIDES[name].title}: {kind} differs from ours by up to {difference:.2g}")


def measure_in_turns(workers: dict[str, Any], case: dict, rounds: int, rest: float = 0.0) -> dict[str, dict[str, list]]:
    """job -> side -> what it measured in each round but the first, ``rest`` seconds before each turn."""
    running = {name: it for name, it in workers.items() if case["do"] != "linear" or SIDES[name].has_linear}
    for worker in running.values():
        worker.ask(**case)
    jobs = ("attend",) if case["do"] == "linear" else ("train", "predict")
    turns: dict = {job: {name: [] for name in running} for job in jobs}
    for round_number in range(rounds + 1):
        for job in jobs:
            for name, worker in running.items():
                time.sleep(rest)
                measured = worker.ask(do="run", job=job)
                if round_number:  # the first one warms up
                    turns[job][name].append(measured)
    return turns


def _ours(by_side):
    return "native" if "native" in by_side else "plain"


def ratio(theirs: list[dict], ours: list[dict], clock: str) -> float:
    """Their seconds over ours in the same round, the median of all rounds."""
    return statistics.median(their[clock] / our[clock] for their, our in zip(theirs, ours))


def as_table(rows: list[dict[str, Any]]) -> str:
    """The rows of :func:`measure_peers` as a Markdown table: milliseconds of ours (native where built, else plain), and
    ratios, all of processor time, with ratios of the clock in brackets; the highest peaks in MB, except for inference,
    whose turns use memory that training has left."""
    cells = []
    for row in rows:
        turns = row["turns"]
        ours = turns[_ours(turns)]
        cell = {"size": row["size"], "job": JOBS[row["job"]]}
        for name, of_side in turns.items():
            if of_side is ours:
                times = f"{1000 * statistics.median(turn['processor_seconds'] for turn in ours):,.1f} ms"
            else:
                times = f"{ratio(of_side, ours, 'processor_seconds'):.2f} ({ratio(of_side, ours, 'seconds'):.2f})"
            peaks = [turn["megabytes"] for turn in of_side]
            has_peak = None not in peaks and row["job"] != "predict"
            cell[SIDES[name].title] = f"{times}, {max(peaks):,.0f} MB" if has_peak else times
        cells.append(cell)
    return as_markdown(cells, list(dict.fromkeys(name for cell in cells for name in cell)))
