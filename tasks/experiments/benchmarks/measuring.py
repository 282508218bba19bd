"""Times, jobs, memory and reports: what the benchmarks share, also in the process of PyTorch, which has no Paddle."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Job = Callable[[], Any]


def timed(run: Job) -> dict[str, float]:
    """``seconds`` and ``processor_seconds`` of one call of ``run()``, on a GPU with all the work that it started."""
    _wait_for_gpu()
    start, started = time.perf_counter(), time.process_time()
    run()
    _wait_for_gpu()
    return {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - started}


def paddle_jobs(
    model: Any, optimizer: Any, loss: Job, predict: Job, precision: Job = contextlib.nullcontext
) -> dict[str, Job]:
    """``train`` (forward, backward, optimizer) and ``predict`` of a layer of Paddle, in contexts of ``precision``."""
    import paddle

    def train():
        model.train()
        with precision():
            loss().backward()
            optimizer.step()
        optimizer.clear_grad()

    def run_prediction():
        model.eval()
        with paddle.no_grad(), precision():
            predict()

    return {"train": train, "predict": run_prediction}


def forget_peak() -> bool:
    """Reset :func:`peak_megabytes`; returns whether the system can do that (Linux and GPUs can)."""
    if _gpu() is not None:
        _gpu().empty_cache()
        _gpu().reset_max_memory_allocated()
        return True
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
        return True
    return False


def peak_megabytes() -> int:
    """The peak memory of this process, or of its tensors on the GPU where Paddle computes on one."""
    if _gpu() is not None:
        return round(_gpu().max_memory_allocated() / 2**20)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _gpu():
    paddle = sys.modules.get("paddle")
    return paddle.device.cuda if paddle is not None and paddle.get_device().startswith("gpu") else None


def _wait_for_gpu():
    if _gpu() is not None:
        _gpu().synchronize()


def report(measured: dict[str, Any], text: str, output: Path | None) -> None:
    """Print a text about what was measured here and its ``notes``, and write all numbers to a JSON file, if any."""
    from paddle_rope.machine import machine_in_words
    from tasks.common.files import write_json

    measured = {"machine": machine_in_words(), **measured}
    if output is not None:
        write_json(output, measured)
    print("\n".join([measured["machine"], text, *(f"note: {note}" for note in measured.get("notes", ()))]))
