"""The parts of a run in processes of this machine."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Iterator
from multiprocessing.connection import wait

from tqdm import tqdm

from tasks.common.errors import InputError
from tasks.scaling.formats import Part
from tasks.scaling.worker import MOST_DEATHS, Done, Job, PartWorker

SPAWN = multiprocessing.get_context("spawn")  # a forked process with threads of paddle would hang
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # variables that new processes read


def run_in_processes(job: Job, parts: list[Part], count: int) -> Iterator[Done | None]:
    """Do all parts in ``count`` processes: yields None when a model is open, then the result of each part. When a
    process dies, another one replaces it and computes its part again.

    Raises:
        InputError: the model cannot be opened, a file cannot be read or written, or several processes have died over
            the same part.
    """
    waiting, deaths, left, is_open = deque(parts), Counter(), len(parts), False
    processes, at_work = [], {}  # pipe to a process -> (the process, its part; None while it opens the model)

    def start():
        pipe, its_end = SPAWN.Pipe()
        processes.append(SPAWN.Process(target=_work, args=(job, its_end), daemon=True))
        processes[-1].start()
        its_end.close()
        at_work[pipe] = processes[-1], None

    os.environ.update(dict.fromkeys(THREADS, str(job.threads)))
    try:
        for _ in range(min(count, left)):
            start()
        while left:
            pipe = wait(at_work)[0]
            process, part = at_work.pop(pipe)
            try:
                done = pipe.recv()
            except (EOFError, OSError):
                process.join()
                deaths[part] += 1
                _report_death(part, process.exitcode, deaths[part])
                waiting.extendleft([] if part is None else [part])
                start()
                continue
            if isinstance(done, Exception):
                raise done
            if part is not None:
                left -= 1
                yield done
            elif not is_open:
                is_open = True
                yield None
            if waiting:
                at_work[pipe] = process, waiting.popleft()
                with contextlib.suppress(OSError):  # it has died; waiting for its answer says so
                    pipe.send(at_work[pipe][1])
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.join()


def _report_death(part, code, deaths):
    cause = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit status {code}"
    where = f"in {part.path}, records {part.first} to {part.last}" if part else "before its first part"
    if deaths == MOST_DEATHS:
        remedy = "use fewer --processes or a smaller --batch_size if memory was short, and run the same command again"
        raise InputError(f"{MOST_DEATHS} processes have died {where} ({cause}); {remedy} to go on")
    tqdm.write(f"a process has died {where} ({cause}); another one takes its place", file=sys.stderr)


def _work(job, pipe):
    """Open the model and do parts as they come, until the pipe is closed or the parent has ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tqdm.set_lock(threading.RLock())  # its own is a semaphore, which a process that is killed leaves behind
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    try:
        worker = PartWorker(job)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # importing Paddle replaces it
        pipe.send(None)
        while True:
            pipe.send(worker(pipe.recv()))
    except Exception as error:
        if not isinstance(error, (InputError, EOFError)):
            traceback.print_exc()
        with contextlib.suppress(OSError):  # nobody waits for it
            pipe.send(error)


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)  # even within a part, because another run may be at work on it
