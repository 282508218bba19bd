"""The parts of a run in processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import Counter, deque
from multiprocessing.connection import wait

from tqdm import tqdm

from tasks.common.errors import InputError
from tasks.scaling.formats import Part
from tasks.scaling.worker import MOST_DEATHS, Job, PartWorker

SPAWN = multiprocessing.get_context("spawn")  # a forked process with threads of paddle would hang


def run_in_processes(job: Job, parts: list[Part], events, count: int) -> None:
    """Do all parts. A process that dies is replaced, and its part computed again.

    Args:
        job, parts: the work.
        count: of the processes.
        events: object with the methods ``ready()``, called when a model is open, ``advance(records)``, negative when a
            process has died, and ``done(done)``.

    Raises:
        InputError: the model cannot be opened, a file cannot be read or written, or several processes have died over
            the same part.
    """
    waiting, deaths, workers = deque(parts), Counter(), []
    with _threads_of_children(job.threads):
        try:
            workers = [_Process(job) for _ in range(min(count, len(parts)))]
            while any(worker.part for worker in workers) or waiting:
                for pipe in wait([worker.pipe for worker in workers]):
                    worker = next(one for one in workers if one.pipe is pipe)
                    try:
                        kind, value = pipe.recv()
                    except (EOFError, ConnectionResetError):
                        workers[workers.index(worker)] = _replace(worker, job, waiting, deaths, events)
                        continue
                    if kind == "advance":
                        worker.advanced += value
                        events.advance(value)
                        continue
                    if kind == "refused":
                        raise InputError(value)
                    if kind == "failed":
                        raise RuntimeError(f"in a process of its own:\n{value}")
                    getattr(events, kind)(*value)
                    worker.give(waiting.popleft() if waiting else None)
        finally:
            for worker in workers:
                worker.end()


class _Process:
    """A process that does a part at a time; ``part`` is the one that it does now."""

    def __init__(self, job):
        self.part, self.advanced = None, 0
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_work, args=(theirs, job), daemon=True)
        with _interrupts_ignored():  # Ctrl-C reaches all processes of a terminal; this one here ends the others
            self.process.start()
        theirs.close()

    def give(self, part):
        self.part, self.advanced = part, 0
        if part:
            with contextlib.suppress(BrokenPipeError):  # it has died: the pipe says so when it is read
                self.pipe.send(part)

    def end(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _replace(worker, job, waiting, deaths, events):
    """A new process in the place of one that has died."""
    worker.end()
    code = worker.process.exitcode
    cause = f"signal {-code}, {signal.strsignal(-code)}" if code and code < 0 else f"exit status {code}"
    where, part = "before its first part", worker.part
    if part:
        where = f"in {part.path}, records {part.first} to {part.last}"
        waiting.appendleft(part)
        events.advance(-worker.advanced)
    deaths[part] += 1
    if deaths[part] == MOST_DEATHS:
        raise InputError(
            f"{MOST_DEATHS} processes have died {where} ({cause}); take fewer --processes or a smaller --batch_size "
            "if the memory was too small, and run the same command again to go on"
        )
    tqdm.write(f"a process has died {where} ({cause}); another takes its place", file=sys.stderr)
    return _Process(job)


def _work(pipe, job):
    """What a process does."""
    tqdm.set_lock(threading.RLock())  # its own is a semaphore, which a process that is killed leaves behind
    try:
        worker = PartWorker(job)
        pipe.send(("ready", ()))
        while True:
            part = pipe.recv()
            pipe.send(("done", (worker(part, lambda records: pipe.send(("advance", records))),)))
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the run has ended
        return
    except InputError as error:
        pipe.send(("refused", str(error)))
    except Exception:
        pipe.send(("failed", traceback.format_exc()))


@contextlib.contextmanager
def _threads_of_children(threads):
    """Processes that are started within this block compute with so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupts_ignored():
    """Processes that are started within this block, in the main thread, do not notice Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
