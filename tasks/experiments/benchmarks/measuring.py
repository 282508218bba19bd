"""Times, jobs and memory: what the benchmarks share. Imports no framework, so that PyTorch's process measures alike."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def timed(run: Callable[[], Any]) -> dict[str, float]:
    """``seconds`` and ``processor_seconds`` of one call of ``run()``, on a GPU with all the work that it started."""
    _wait_for_gpu()
    start, started = time.perf_counter(), time.process_time()
    run()
    _wait_for_gpu()
    return {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - started}


def seconds_of(run: Callable[[], Any], least_runs: int, most_runs: int, enough_seconds: float) -> list[float]:
    """The seconds of each call of ``run()``: ``least_runs`` calls, and more up to ``most_runs`` while all of them
    together took less than ``enough_seconds``."""
    seconds: list[float] = []
    while len(seconds) < least_runs or (len(seconds) < most_runs and sum(seconds) < enough_seconds):
        seconds.append(timed(run)["seconds"])
    return seconds


def paddle_jobs(
    model: Any,
    optimizer: Any,
    loss: Callable[[], Any],
    predict: Callable[[], Any],
    precision: Callable[[], Any] = contextlib.nullcontext,
    scaler: Any = None,
) -> dict[str, Callable[[], None]]:
    """``train`` (forward, backward, optimizer) and ``predict`` of a model of Paddle, functions without arguments.

    Args:
        model: a layer, set to training or evaluation first.
        optimizer: from ``paddle.optimizer``; it clips if it was told to.
        loss: computes the loss, a scalar tensor.
        predict: computes a prediction.
        precision: makes the context of each job.
        scaler: ``paddle.amp.GradScaler`` for float16.
    """
    import paddle

    def train():
        model.train()
        with precision():
            if scaler is None:
                loss().backward()
                optimizer.step()
            else:
                scaler.scale(loss()).backward()
                scaler.step(optimizer)
                scaler.update()
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
