"""The process of one side: it makes what it is told to make, and computes whenever it is its turn.

A side is an object with ``version`` and three methods. ``outputs(folder, ids, linear)`` gives the numbers of an encoder
with the weights of a folder, and of linear attention, to compare with the other sides. ``encoder`` and ``linear`` give
the jobs to be timed, by name, without arguments. No library is imported before its turn.
"""

from __future__ import annotations

import json
import os
import sys
import time

from tasks.experiments.benchmarks.lengths import forget_peak, peak_megabytes


def open_side(name: str):
    """A side of ``TITLES`` in :mod:`tasks.experiments.benchmarks.peers.measured`.

    Raises:
        ImportError: a library is missing.
    """
    if "huggingface" in name:
        from tasks.experiments.benchmarks.peers.torch_side import TorchSide

        return TorchSide(name)
    if name != "paddlenlp_as_installed":
        from tasks.common.process import prepare

        prepare()
    from tasks.experiments.benchmarks.peers.paddle_sides import OurSide, PaddleNLPSide

    return PaddleNLPSide() if "paddlenlp" in name else OurSide(name)


class Respond:
    """Answers requests to a side: ``{"do": "outputs", ...}``, and ``{"do": "encoder" or "linear", ...}`` with the
    arguments of the methods; after the latter ``{"do": "run", "job": name}``, with ``{"seconds", "processor_seconds",
    "megabytes"}``. The last is the peak of the process beyond what it had before the first jobs were made; so what
    larger jobs before have left counts. None where the system does not tell it."""

    def __init__(self, side):
        self.side = side
        self.jobs: dict = {}
        self.before: int | None = None  # MB

    def __call__(self, do: str, **arguments) -> dict:
        if do == "run":
            is_new_peak = forget_peak()
            start, started = time.perf_counter(), time.process_time()
            self.jobs[arguments["job"]]()
            times = {"processor_seconds": time.process_time() - started, "seconds": time.perf_counter() - start}
            return {**times, "megabytes": peak_megabytes() - self.before if is_new_peak else None}
        if do == "outputs":
            return self.side.outputs(**arguments)
        self.jobs = {}  # frees the model before the next one is made
        if self.before is None:
            forget_peak()
            self.before = peak_megabytes()
        self.jobs = getattr(self.side, do)(**arguments)
        return {}


def main(words: list[str]) -> None:
    """Write ``{"version"}`` or ``{"left_out": why}``, then the answer to each line; all are JSON.

    Args:
        words: name of the side.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print

    def answer(**values):
        print(json.dumps(values), file=answers, flush=True)

    try:
        side = open_side(words[0])
    except ImportError as error:
        answer(left_out=str(error))
        return
    answer(version=side.version)
    respond = Respond(side)
    for line in sys.stdin:
        answer(**respond(**json.loads(line)))


if __name__ == "__main__":
    main(sys.argv[1:])
