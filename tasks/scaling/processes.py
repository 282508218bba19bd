"""Compute the parts of a run in processes of this machine."""

import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool

from pebble import CONSTS, ProcessExpired, ProcessPool
from tqdm import tqdm

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.scaling.formats import Part
from paddle_rope.tasks.scaling.worker import MOST_DEATHS, Done, Job, PartWorker

SPAWN = multiprocessing.get_context("spawn")  # a forked process with threads of paddle would hang
CONSTS.channel_lock_timeout = 10  # seconds that a pool waits for the lock of a killed process; pebble's default is 60
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # variables that new processes read
_REMEDY = "use fewer --processes or a smaller --batch_size if memory was short, and run the same command again to go on"
_worker: PartWorker | InputError  # of this process, or why it has none


def run_in_processes(job: Job, parts: list[Part], count: int) -> Iterator[Done | None]:
    """Compute all parts in ``count`` processes: yields None when a model is open, then the result of each part. When a
    process dies, another one replaces it and computes its part again. Raises InputError if the model cannot be opened,
    a file cannot be read or written, or several processes have died on the same part."""
    left, deaths = dict.fromkeys(parts), Counter()
    is_open = False
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(job.threads)))
    try:
        while left:
            waiting = len(left)
            pool = ProcessPool(min(count, waiting), initializer=_open_model, initargs=(job,), context=SPAWN)
            try:
                pool.schedule(_check_model).result()
                if not is_open:
                    yield None
                    is_open = True
                yield from _run_parts(pool, left, deaths)
            except (BrokenProcessPool, ProcessExpired):  # a process died while it was not computing a part
                if len(left) == waiting:
                    raise InputError(f"a process has died before its first part; {_REMEDY}") from None
                tqdm.write("a process has died between two parts; the processes are started again", file=sys.stderr)
            finally:
                pool.stop()
                pool.join()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _run_parts(pool, left, deaths):
    """Compute the parts in ``left``, and remove each one when it is done."""
    parts_of_futures, finished = {}, queue.SimpleQueue()

    def start(part):
        future = pool.schedule(_write_part, [part])
        parts_of_futures[future] = part
        future.add_done_callback(finished.put)

    for part in list(left):
        start(part)
    while parts_of_futures:
        future = finished.get()
        part = parts_of_futures.pop(future)
        try:
            done = future.result()
        except ProcessExpired as error:
            deaths[part] += 1
            _report_death(part, error.exitcode, deaths[part])
            start(part)
        else:
            del left[part]
            yield done


def _report_death(part, code, deaths):
    cause = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit status {code}"
    where = f"in {part.path}, records {part.first} to {part.last}"
    if deaths == MOST_DEATHS:
        raise InputError(f"{MOST_DEATHS} processes have died {where} ({cause}); {_REMEDY}")
    tqdm.write(f"a process has died {where} ({cause}); another one takes its place", file=sys.stderr)


def _open_model(job):
    """Initialize a process, which ends with its parent."""
    global _worker
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tqdm.set_lock(threading.RLock())  # tqdm's default lock is a semaphore, which a killed process leaves behind
    try:
        _worker = PartWorker(job)
    except InputError as error:
        _worker = error
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # importing Paddle replaces it


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)  # even within a part, because another run may be working on it


def _check_model() -> None:
    if isinstance(_worker, InputError):
        raise _worker


def _write_part(part) -> Done:
    _check_model()
    return _worker(part)
