"""Compute requests of many connections together: a bounded queue, one thread, requests in turn."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import anyio
from starlette.exceptions import HTTPException

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.serving import metrics
from paddle_rope.tasks.serving.models import Work, characters_of
from paddle_rope.tasks.serving.settings import ServiceSettings

BATCH_TOKENS = 1 << 11  # of a batch of several pieces, padding included: bounds how long short texts wait for long ones
ANSWER_SHARE = 5  # bytes of an answer for each byte that a body may have


class Piece(NamedTuple):
    """A unit of computation (a text, a pair of texts, or a window of a long text): its content, its size in tokens or
    characters, and the results of its item's pieces, to which its own result is appended."""

    content: Any
    size: int
    results: list


def late(settings: ServiceSettings) -> HTTPException:
    """What a request gets that has waited for ``max_seconds``."""
    return HTTPException(503, f"no answer within {settings.max_seconds:g} s", {"retry-after": "1"})


class Job:
    """The items of a request. ``results`` holds the JSON of each item once ``done`` (a future) is set.

    The event loop creates and drops a job; the compute thread does everything else, for as long as the client waits:
    it looks at the clock before it reads a piece and before it joins pieces, and each such step is bounded.
    """

    def __init__(self, work: Work, items: Sequence[Any], settings: ServiceSettings) -> None:
        self.work, self.items, self.settings = work, items, settings
        self.waiting = len(items)  # items with pieces left
        self.waiting_characters = characters_of(items) + work.dictionary  # of these items, and what it holds anyway
        self.results: list[bytes] = []
        self.error: Exception | None = None
        self.arrived = time.monotonic()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pieces = self._read()
        self._next: Piece | None = None
        self._begun: list[list] = []  # for each item begun: the results of its pieces
        self._bytes = 0  # of the results

    def _read(self) -> Iterator[Piece]:
        for item in self.items:
            self._begun.append([])
            for content, size in self.work.pieces(item):
                yield Piece(content, size, self._begun[-1])
            self.waiting -= 1
            self.waiting_characters -= characters_of([item])

    def peek(self) -> Piece | None:
        """The next piece, read on demand; None after the last one or after an error."""
        if self._next is None:
            self._next = self._try(next, self._pieces, None)
        return self._next

    def take(self) -> None:
        """Consume the next piece."""
        self._next = None

    def finish(self) -> bool:
        """Make the results of the items whose pieces are all computed. Whether that, or an error, ends the job."""
        has_ended = self.peek() is None
        complete = len(self._begun) - (not has_ended)  # the next piece is of the last item begun
        while self.error is None and len(self.results) < complete:
            self._try(self._join)
        return has_ended or self.error is not None

    def _try(self, step, *given):
        """The value of a step; None after an error, which ends the job."""
        if self.error is None:
            try:
                if time.monotonic() > self.arrived + self.settings.max_seconds:
                    raise late(self.settings)
                return step(*given)
            except Exception as error:
                self.error = error
        return None

    def _join(self):
        number = len(self.results)
        self.results.append(self.work.join(self.items[number], self._begun[number]))
        self._begun[number] = []
        self._bytes += len(self.results[-1])
        if self._bytes > (most := ANSWER_SHARE * self.settings.max_body_bytes):
            raise InputError(f"the answer is larger than {most:,} bytes; send less at once")


class Batcher:
    """Computes jobs in one thread, in batches of pieces of the same work.

    A batch starts when it is full, or when its oldest item has waited ``max_wait_ms``, and the thread is free. It
    takes a piece of each job in turn, and jobs that it leaves out come first in the next one, so that a job of many or
    long texts, which is computed in several batches, does not hold up the others. An error in a batch is given only to
    the job that causes it. A job that arrives while the queue has space is accepted whole. Call the methods in the
    event loop.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.computing_since: float | None = None
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="compute")
        self._jobs: list[Job] = []  # unfinished, in turn
        self._news = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Items of which not all pieces have been put into a batch."""
        return sum(job.waiting for job in self._jobs)

    def is_full(self) -> bool:
        """Whether the limit of waiting items (counting at most a batch per job) or of characters is reached."""
        if sum(min(job.waiting, self.settings.batch_size) for job in self._jobs) >= self.settings.max_queue:
            return True
        return sum(job.waiting_characters for job in self._jobs) >= self.settings.max_queue_characters

    def submit(self, work: Work, items: Sequence[Any]) -> Job:
        """Put all items into the queue; the caller checks :meth:`is_full` first."""
        job = Job(work, items, self.settings)
        if items:
            self._set_jobs([*self._jobs, job])
            self._news.set()
        else:
            job.done.set_result(None)
        return job

    def drop(self, job: Job) -> None:
        """Cancel a job whose client no longer waits; results of its running batch are discarded."""
        if not job.done.done():
            job.done.cancel()
            self._set_jobs([other for other in self._jobs if other is not job])

    def _set_jobs(self, jobs):
        self._jobs = jobs
        metrics.WAITING.set(self.waiting)

    async def run(self) -> None:
        """Compute submitted jobs until cancelled."""
        while True:
            await self._wait_for_batch()
            jobs = [job for job in self._jobs if job.work.key == self._jobs[0].work.key]
            self.computing_since = time.monotonic()
            finished = await asyncio.get_running_loop().run_in_executor(self.thread, self._compute_batch, jobs)
            self.computing_since = None
            for job, is_finished in finished.items():
                if is_finished and not job.done.done():  # otherwise dropped
                    job.done.set_exception(job.error) if job.error else job.done.set_result(None)
            unfinished = [job for job in finished if not job.done.done()]
            self._set_jobs([job for job in self._jobs if job not in finished] + unfinished)

    async def _wait_for_batch(self):
        while True:
            self._news.clear()
            timeout = None
            if self._jobs:
                first = self._jobs[0]
                ready = sum(job.waiting for job in self._jobs if job.work.key == first.work.key)
                timeout = first.arrived + self.settings.max_wait_ms / 1000 - time.monotonic()
                if ready >= self.settings.batch_size or timeout <= 0:
                    return
            with anyio.move_on_after(timeout):
                await self._news.wait()

    def _compute_batch(self, jobs: list[Job]) -> dict[Job, bool]:
        """Compute a batch, in the thread; returns for each job in the batch whether it is finished."""
        batch = self._draw(jobs)
        metrics.WAITING.set(self.waiting)
        pieces = [piece for of_job in batch.values() for piece in of_job]
        if pieces:
            begin, work = time.monotonic(), jobs[0].work
            _compute(work, batch)
            metrics.BATCH_SECONDS.labels(work.model, work.verb).observe(time.monotonic() - begin)
            metrics.BATCH_TEXTS.labels(work.model, work.verb).observe(len(pieces))
        return {job: job.finish() for job in batch}

    def _draw(self, jobs: list[Job]) -> dict[Job, list[Piece]]:
        """The next batch: pieces of each job in turn, until one does not fit; that piece begins the next batch."""
        batch: dict[Job, list[Piece]] = {}
        turns, count, longest = deque(jobs), 0, 0
        while turns and count < self.settings.batch_size:
            job = turns.popleft()
            piece = job.peek()
            if piece is None:
                batch.setdefault(job, [])  # an error, or no piece is left
                continue
            longest = max(longest, piece.size)
            if count and (count + 1) * longest > BATCH_TOKENS:
                break
            batch.setdefault(job, []).append(piece)
            job.take()
            count += 1
            turns.append(job)
        return batch


def _compute(work: Work, batch: dict[Job, list[Piece]]) -> None:
    """Compute pieces; if that fails, each job alone, so that only the job with the error gets it."""
    pieces = [piece for of_job in batch.values() for piece in of_job]
    try:
        for piece, result in zip(pieces, work.compute([piece.content for piece in pieces])):
            piece.results.append(result)
    except Exception as error:  # of any kind: the thread must go on
        if len(batch) == 1:
            next(iter(batch)).error = error
        else:
            for job, of_job in batch.items():
                _compute(work, {job: of_job})
