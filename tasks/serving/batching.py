"""Requests of many connections, computed together: a bounded queue, one thread, requests in turn."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tasks.serving.models import Work

BATCH_CHARACTERS = 1 << 12  # of a batch of several items: a long text does not hold up many short ones
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
    """Computes jobs in one thread, in batches of items of the same work.

    A batch starts when it is full, or when its oldest item has waited ``max_wait`` seconds, and the thread is free. It
    takes an item of each job in turn, and jobs that it leaves out come first in the next one: a large job, which is
    computed in several batches, does not hold up the others. An HTTP connection sends its next request after the answer
    to the last one, so connections, too, are served in turn. An error in a batch is given only to the job that causes
    it. Methods are called in the event loop.

    Args:
        batch_size: items of a batch at most.
        max_wait: seconds.
        max_queue: items that may wait; of each job, at most ``batch_size`` of them count. A job that comes while there
            is room is taken whole.
        max_queue_characters: characters that may wait; likewise.
        on_batch: called with the work, the number of items and the seconds of each batch.
        on_waiting: called with the number of items that wait, whenever that changes.
    """

    def __init__(
        self,
        batch_size: int,
        max_wait: float,
        max_queue: int,
        max_queue_characters: int,
        on_batch: Callable[[Work, int, float], None] = lambda work, items, seconds: None,
        on_waiting: Callable[[int], None] = lambda items: None,
    ) -> None:
        self.batch_size, self.max_wait = batch_size, max_wait
        self.max_queue, self.max_queue_characters = max_queue, max_queue_characters
        self.on_batch, self.on_waiting = on_batch, on_waiting
        self.waiting = self.waiting_characters = 0  # items, and their characters
        self.computing_since: float | None = None
        self._jobs: list[Job] = []
        self._news = asyncio.Event()
        self._seconds_per_item = 0.01
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="compute")

    async def in_thread(self, function: Callable, *arguments: Any) -> Any:
        """The result of a function that is called in the thread that computes."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def check_room(self) -> None:
        """Raise Busy if as many items or characters wait as may."""
        if self.waiting_characters >= self.max_queue_characters or (
            self.waiting >= self.max_queue
            and sum(min(len(job.items) - job.taken, self.batch_size) for job in self._jobs) >= self.max_queue
        ):
            raise Busy(max(1, math.ceil(self.waiting * self._seconds_per_item)))

    def submit(self, work: Work, items: Sequence[Any]) -> Job:
        """Put items into the queue; raises Busy if it is full."""
        self.check_room()
        job = Job(work, items)
        if items:
            self._jobs.append(job)
            self._count(len(items), characters_of(items))
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
            self._count(job.taken - len(job.items), -characters_of(job.items[job.taken :]))

    def _count(self, items, characters):
        self.waiting += items
        self.waiting_characters += characters
        self.on_waiting(self.waiting)

    async def run(self) -> None:
        """Compute what comes, until cancelled."""
        while True:
            await self._wait_for_batch()
            parts = self._take()
            if not parts:
                continue
            work, count = parts[0][0].work, sum(len(items) for _, _, items in parts)
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

    def _take(self) -> list[tuple[Job, int, Sequence]]:
        """The next batch: jobs, where their items in it begin, and these items."""
        if not self._jobs:
            return []
        work, count, characters = self._jobs[0].work, 0, 0
        starts: dict[Job, int] = {}
        turns = deque(job for job in self._jobs if job.work is work)
        while turns and count < self.batch_size:
            job = turns.popleft()
            length = characters_of(job.items[job.taken : job.taken + 1])
            if count and characters + length > BATCH_CHARACTERS:
                continue
            starts.setdefault(job, job.taken)
            job.taken, count, characters = job.taken + 1, count + 1, characters + length
            if job.taken < len(job.items):
                turns.append(job)
        unfinished = [job for job in starts if job.taken < len(job.items)]
        self._jobs = [job for job in self._jobs if job not in starts] + unfinished
        self._count(-count, -characters)
        return [(job, start, job.items[start : job.taken]) for job, start in starts.items()]

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


def characters_of(items: Sequence[Any]) -> int:
    """The characters of texts, or of pairs of texts."""
    return sum(len(item) if isinstance(item, str) else sum(map(len, item)) for item in items)


def _compute(work, parts):
    """For each part of a batch, a list of items, its results, or the exception that it causes."""
    try:
        results = iter(work.compute([item for part in parts for item in part]))
        return [[next(results) for _ in part] for part in parts]
    except Exception as error:  # of whatever kind: the thread goes on, and the others get their answers
        if len(parts) == 1:
            return [error]
        return [outcome for part in parts for outcome in _compute(work, [part])]
