"""What every benchmark measures: the time of a call, a training step, the peak of memory. Imports no framework, so that
processes of PyTorch measure in the same way."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def timed(run: Callable[[], Any]) -> dict[str, float]:
    """``seconds`` and ``processor_seconds`` of one call of ``run()``; on a GPU of Paddle, of all that it started."""
    _wait_for_gpu()
    start, started = time.perf_counter(), time.process_time()
    run()
    _wait_for_gpu()
    return {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - started}


def seconds_of(run: Callable[[], Any], least_runs: int, most_runs: int, enough_seconds: float) -> list[float]:
    """The seconds of each call of ``run()``: ``least_runs``, and more up to ``most_runs`` while they have taken less
    than ``enough_seconds`` together."""
    seconds: list[float] = []
    while len(seconds) < least_runs or (len(seconds) < most_runs and sum(seconds) < enough_seconds):
        seconds.append(timed(run)["seconds"])
    return seconds


def training_step(optimizer: Any, loss: Callable[[], Any], scaler: Any = None) -> None:
    """One training step in Paddle: forward, backward, optimizer.

    Args:
        optimizer: of ``paddle.optimizer``, which clips as it was told.
        loss: computes the loss, a scalar tensor.
        scaler: ``paddle.amp.GradScaler`` for float16.
    """
    if scaler is None:
        loss().backward()
        optimizer.step()
    else:
        scaler.scale(loss()).backward()
        scaler.step(optimizer)
        scaler.update()
    optimizer.clear_grad()


def forget_peak() -> bool:
    """Let :func:`peak_megabytes` begin anew; returns whether the system can do that (Linux and GPUs can)."""
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
