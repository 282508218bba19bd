"""Requests of many connections, computed together: a bounded queue, one thread, first come, first served."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tasks.serving.models import Work

BATCH_CHARACTERS = 1 << 14  # of a batch of several items: a long text does not hold up many short ones
SMOOTHING = 0.9  # of the mean time that an item takes


class Busy(Exception):
    """Too many items wait; ``retry_after`` are the seconds in which those that wait now will have been computed."""

    def __init__(self, retry_after: int):
        super().__init__(f"the queue is full; try again in {retry_after} s")
        self.retry_after = retry_after


class Job:
    """The items of a request: ``results`` has the JSON of each as soon as ``done`` (a future) is set."""

    def __init__(self, work: Work, items: Sequence[Any]) -> None:
        self.work, self.items = work, items
        self.results: list[str | None] = [None] * len(items)
        self.taken = 0  # items that were put into a batch: the first so many
        self.missing = len(items)  # results
        self.arrived = time.monotonic()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Batcher:
    """Computes jobs in one thread of its own, in batches of items of the same work.

    A batch starts when it is full, or when its oldest item has waited ``max_wait`` seconds, and the thread is free. A
    job of many items may be computed in several batches. An error in a batch is given only to the job that causes it.
    Methods are called in the event loop.

    Args:
        batch_size: items of a batch at most.
        max_wait: seconds.
        max_queue: items that may wait; a job that comes while there is room is taken whole.
        on_batch: called with the work, the number of items and the seconds of each batch.
        on_waiting: called with the number of items that wait, whenever that changes.
    """

    def __init__(
        self,
        batch_size: int,
        max_wait: float,
        max_queue: int,
        on_batch: Callable[[Work, int, float], None] = lambda work, items, seconds: None,
        on_waiting: Callable[[int], None] = lambda items: None,
    ) -> None:
        self.batch_size, self.max_wait, self.max_queue = batch_size, max_wait, max_queue
        self.on_batch, self.on_waiting = on_batch, on_waiting
        self.waiting = 0  # items
        self.computing_since: float | None = None
        self._jobs: deque[Job] = deque()
        self._news = asyncio.Event()
        self._seconds_per_item = 0.01
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="compute")

    async def in_thread(self, function: Callable, *arguments: Any) -> Any:
        """The result of a function that is called in the thread that computes."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def check_room(self) -> None:
        """Raise Busy if as many items wait as may."""
        if self.waiting >= self.max_queue:
            raise Busy(max(1, math.ceil(self.waiting * self._seconds_per_item)))

    def submit(self, work: Work, items: Sequence[Any]) -> Job:
        """Put items into the queue; raises Busy if it is full."""
        self.check_room()
        job = Job(work, items)
        if items:
            self._jobs.append(job)
            self._count(len(items))
            self._news.set()
        else:
            job.done.set_result(None)
        return job

    def drop(self, job: Job) -> None:
        """Forget a job that nobody waits for; what is being computed of it is thrown away."""
        if not job.done.done():
            job.done.cancel()
            self._remove(job)

    def _remove(self, job):
        with contextlib.suppress(ValueError):  # all of it was taken
            self._jobs.remove(job)
            self._count(job.taken - len(job.items))

    def _count(self, change):
        self.waiting += change
        self.on_waiting(self.waiting)

    async def run(self) -> None:
        """Compute what comes, until cancelled."""
        while True:
            await self._wait_for_batch()
            parts = list(self._take())
            if not parts:
                continue
            work, count = parts[0][0].work, sum(len(items) for _, _, items in parts)
            self._count(-count)
            self.computing_since = time.monotonic()
            outcomes = await self.in_thread(_compute, work, [items for _, _, items in parts])
            seconds, self.computing_since = time.monotonic() - self.computing_since, None
            self._seconds_per_item = SMOOTHING * self._seconds_per_item + (1 - SMOOTHING) * seconds / count
            self.on_batch(work, count, seconds)
            for (job, start, items), outcome in zip(parts, outcomes):
                self._deliver(job, start, len(items), outcome)

    async def _wait_for_batch(self):
        while True:
            self._news.clear()
            timeout = None
            if self._jobs:
                first = self._jobs[0]
                ready = sum(len(job.items) - job.taken for job in self._jobs if job.work is first.work)
                timeout = first.arrived + self.max_wait - time.monotonic()
                if ready >= self.batch_size or timeout <= 0:
                    return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), timeout)

    def _take(self) -> Iterator[tuple[Job, int, Sequence]]:
        """The next batch: jobs, where their items in it begin, and these items."""
        if not self._jobs:
            return
        work, count, characters = self._jobs[0].work, 0, 0
        for job in [job for job in self._jobs if job.work is work]:
            start = job.taken
            while job.taken < len(job.items) and count < self.batch_size:
                characters += _length(job.items[job.taken])
                if count and characters > BATCH_CHARACTERS:
                    break
                count, job.taken = count + 1, job.taken + 1
            if job.taken > start:
                yield job, start, job.items[start : job.taken]
            if job.taken < len(job.items):
                return
            self._jobs.remove(job)

    def _deliver(self, job, start, count, outcome):
        if job.done.done():  # dropped, or failed in an earlier batch
            return
        if isinstance(outcome, Exception):
            self._remove(job)
            job.done.set_exception(outcome)
            return
        job.results[start : start + count] = outcome
        job.missing -= count
        if not job.missing:
            job.done.set_result(None)


def _length(item):
    return len(item) if isinstance(item, str) else sum(map(len, item))  # of a text, or of a pair


def _compute(work, parts):
    """For each part of a batch, a list of items, its results, or the exception that it causes."""
    try:
        results = iter(work.compute([item for part in parts for item in part]))
        return [[next(results) for _ in part] for part in parts]
    except Exception as error:  # of whatever kind: the thread goes on, and the others get their answers
        if len(parts) == 1:
            return [error]
        return [outcome for part in parts for outcome in _compute(work, [part])]
