"""Code that the benchmarks share, also in PyTorch processes without Paddle: workers, times, jobs, memory, reports.

A worker is a process that answers requests, each a line of JSON. Everything that is compared has one worker, and the
workers take turns. The module that a worker runs has a function ``start(*arguments)``, which returns a first answer, a
dict, and the function that answers a request: keyword arguments -> dict.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paddle_rope
from paddle_rope.tasks.common.errors import InputError

Job = Callable[[], Any]
_ROOT = Path(paddle_rope.__file__).resolve().parents[1]


class Worker(contextlib.AbstractContextManager):
    """A running process of a ``module``; a context manager that ends it. ``first`` is its first answer.

    ``module`` is its full name; ``python`` the interpreter, None for this one; with ``is_prepared`` Paddle is set up
    first, as our commands do; ``settings`` are added to the environment, and None removes a variable. Raises InputError
    if the process cannot be started, or ``start`` raised ImportError or InputError, with that message.
    """

    def __init__(
        self, module: str, *arguments: str, python: str | None = None, is_prepared: bool = True, **settings: str | None
    ):
        inherited = os.environ.get("PYTHONPATH") if python is None else None
        path = os.pathsep.join(filter(None, [str(_ROOT), inherited]))
        settings |= {"PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false"}
        environment = {name: value for name, value in {**os.environ, **settings}.items() if value is not None}
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  lives as long as the process
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        argv = [python or sys.executable, "-m", __name__, str(is_prepared), module, *arguments]
        try:
            self._process = subprocess.Popen(argv, env=environment, text=True, **pipes)
        except OSError as error:
            raise InputError(f"{python} cannot be started ({error.strerror}); give another Python") from None
        self.first = self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request; raises InputError with the process's last line on stderr if it has ended."""
        with contextlib.suppress(BrokenPipeError):  # it has ended; _answer says why
            self._process.stdin.write(f"{json.dumps(request)}\n")
            self._process.stdin.flush()
        return self._answer()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            *_, last = ["no message", *self._errors.read().split("\n")[:-1]]
            raise InputError(f"its process failed with status {self._process.wait()}: {last.strip()}")
        answer = json.loads(line)
        if "left_out" in answer:
            raise InputError(answer["left_out"])
        return answer


# ---- times, jobs, memory


def timed(run: Job) -> dict[str, float]:
    """``seconds`` and ``processor_seconds`` of one call of ``run()``, including all GPU work that it started."""
    _wait_for_gpu()
    start, started = time.perf_counter(), time.process_time()
    run()
    _wait_for_gpu()
    return {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - started}


def paddle_jobs(
    model: Any, optimizer: Any, loss: Job, predict: Job, precision: Job = contextlib.nullcontext
) -> dict[str, Job]:
    """``train`` (forward, backward, optimizer) and ``predict`` of a Paddle layer, in contexts of ``precision``."""
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


def forget_peak() -> None:
    """Reset :func:`peak_megabytes`, where the system supports that (Linux does)."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


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
    """Print a text about the measurements and their ``notes``, and write all numbers to a JSON file, if given."""
    from paddle_rope.machine import machine_in_words
    from paddle_rope.tasks.common.files import write_json

    measured = {"machine": machine_in_words(), **measured}
    if output is not None:
        write_json(output, measured)
    print("\n".join([measured["machine"], text, *(f"note: {note}" for note in measured.get("notes", ()))]))


def main(is_prepared: str, module: str, *arguments: str) -> None:
    """Answer the requests on standard input until it is closed."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is not an answer
    sys.stdout.reconfigure(line_buffering=True)  # Python 3.13 prints an error before what is still buffered

    if is_prepared == "True":
        from paddle_rope.tasks.common.process import prepare

        prepare()
    try:
        first, respond = importlib.import_module(module).start(*arguments)
    except (ImportError, InputError) as error:
        first, respond = {"left_out": str(error)}, None
    print(json.dumps(first), file=answers, flush=True)
    for line in sys.stdin if respond else ():
        print(json.dumps(respond(**json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
