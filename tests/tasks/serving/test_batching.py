"""What is computed together, and in which order."""

import asyncio
import threading

import pytest

from tasks.serving.batching import BATCH_TOKENS, Batcher
from tasks.serving.models import Work
from tasks.serving.refusal import Refusal
from tasks.serving.settings import Settings


def batcher_of(batch_size, max_wait_ms, max_queue, max_queue_characters):
    queue = {"max_queue": max_queue, "max_queue_characters": max_queue_characters}
    return Batcher(Settings((), batch_size=batch_size, max_wait_ms=max_wait_ms, **queue))


class Recorder:
    """Work that notes its batches, and waits before the first one until it may begin."""

    def __init__(self, model="m"):
        self.batches, self.begin = [], threading.Event()
        self.work = Work(model, "predict", self.compute)

    def compute(self, items):
        assert self.begin.wait(60)
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("bad")
        return [f"<{item}>" for item in items]


def batches_of(requests, batch_size=4, max_wait=0.0, drop=()):
    """Batches and results (or exceptions) of lists of items that come while a first batch, ``first``, is computed."""
    recorder = Recorder()

    async def run():
        batcher = batcher_of(batch_size, max_wait, 100, 1_000_000)
        running = asyncio.create_task(batcher.run())
        first = batcher.submit(recorder.work, ["first"])
        while batcher.waiting:
            await asyncio.sleep(0)
        jobs = [batcher.submit(recorder.work, items) for items in requests]
        for place in drop:
            batcher.drop(jobs[place])
        recorder.begin.set()
        kept = [job for place, job in enumerate(jobs) if place not in drop]
        outcomes = await asyncio.gather(first.done, *(job.done for job in kept), return_exceptions=True)
        running.cancel()
        assert batcher.waiting == 0
        return [job.results if outcome is None else outcome for job, outcome in zip(kept, outcomes[1:])]

    results = asyncio.run(run())
    return recorder.batches[1:], results


def test_requests_fill_batches_in_turn():
    batches, results = batches_of([["a", "b"], ["c", "d", "e"], ["f"]])
    assert batches == [["a", "b", "c", "f"], ["d", "e"]]
    assert results == [["<a>", "<b>"], ["<c>", "<d>", "<e>"], ["<f>"]]


def test_a_request_larger_than_a_batch_is_computed_in_several():
    batches, results = batches_of([[*"abcdefghi"], ["z"]])
    assert batches == [[*"abcz"], [*"defg"], [*"hi"]]
    assert results[0] == [f"<{item}>" for item in "abcdefghi"]


def test_large_requests_do_not_hold_up_small_ones():
    batches, _ = batches_of([[*"abcdefghi"], [*"jklmnopqr"], *([letter] for letter in "123456")])
    assert batches[:3] == [[*"aj12"], [*"3456"], [*"bckl"]]


def test_a_batch_is_bounded_with_its_padding():
    long = "x" * (BATCH_TOKENS // 2)
    assert batches_of([[long, "a", "b"], [long]])[0] == [[long, long], ["a", "b"]]
    assert batches_of([["a", "b", long, "c"]])[0] == [["a", "b"], [long, "c"]]
    pair = ("x" * (BATCH_TOKENS // 2), "y" * (BATCH_TOKENS // 2))
    assert batches_of([[pair, pair]])[0] == [[pair], [pair]]


def test_long_texts_are_computed_by_windows_in_turn_with_others():
    def windows(text):
        return [(text[start : start + 2], 2) for start in range(0, len(text), 2)]

    recorder = Recorder()
    work = Work("m", "predict", recorder.compute, windows, lambda text, found: f"{text}: {'+'.join(found)}")

    async def run():
        batcher = batcher_of(3, 0.0, 100, 1000)
        jobs = [batcher.submit(work, items) for items in (["abcdefgh"], ["ij", "kl"], ["mn"])]
        running = asyncio.create_task(batcher.run())
        recorder.begin.set()
        await asyncio.gather(*(job.done for job in jobs))
        running.cancel()
        return [job.results for job in jobs]

    assert asyncio.run(run()) == [["abcdefgh: <ab>+<cd>+<ef>+<gh>"], ["ij: <ij>", "kl: <kl>"], ["mn: <mn>"]]
    assert recorder.batches == [["ab", "ij", "mn"], ["cd", "ef", "kl"], ["gh"]]


def test_a_text_that_cannot_be_read_or_joined_fails_alone():
    def fails_at(text):
        def function(item, *found):
            if item == text:
                raise ValueError(text)
            return found[0][0] if found else [(item, len(item))]

        return function

    recorder = Recorder()
    work = Work("m", "predict", recorder.compute, fails_at("unread"), fails_at("unjoined"))

    async def run():
        batcher = batcher_of(4, 0.0, 100, 1000)
        jobs = [batcher.submit(work, items) for items in (["a"], ["b", "unread"], ["unjoined"], ["c"])]
        running = asyncio.create_task(batcher.run())
        recorder.begin.set()
        outcomes = await asyncio.gather(*(job.done for job in jobs), return_exceptions=True)
        running.cancel()
        return [job.results if outcome is None else str(outcome) for job, outcome in zip(jobs, outcomes)]

    assert asyncio.run(run()) == [["<a>"], "unread", "unjoined", ["<c>"]]


def test_dropped_requests_are_not_computed():
    assert batches_of([["a"], ["b", "c"], ["d"]], drop=[1])[0] == [["a", "d"]]


def test_an_error_is_that_of_its_request():
    batches, results = batches_of([["a"], ["b", "bad"], ["c"]])
    assert batches == [["a", "b", "bad", "c"], ["a"], ["b", "bad"], ["c"]]
    assert results[::2] == [["<a>"], ["<c>"]] and isinstance(results[1], ValueError)


def test_what_is_left_of_a_request_that_failed_is_not_computed():
    batches, results = batches_of([["bad", *"abcdef"], ["z"]])
    assert [*"cdef"] not in [batch[:4] for batch in batches] and isinstance(results[0], ValueError)
    assert results[1] == ["<z>"]


@pytest.mark.parametrize("max_queue, max_queue_characters", [(3, 1000), (1000, 3)])
def test_a_full_queue_refuses_but_a_request_is_taken_whole(max_queue, max_queue_characters):
    async def run():
        batcher = batcher_of(4, 0.0, max_queue, max_queue_characters)
        work = Recorder().work
        batcher.submit(work, ["a", "b"])
        batcher.submit(work, [*"cdefg"])
        with pytest.raises(Refusal) as refusal:
            batcher.submit(work, ["h"])
        assert refusal.value.status == 503 and int(refusal.value.headers["retry-after"]) >= 1
        return batcher.waiting

    assert asyncio.run(run()) == 7


def test_a_request_of_many_items_does_not_fill_the_queue():
    async def run():
        batcher = batcher_of(4, 0.0, 9, 1000)
        work = Recorder().work
        large = [batcher.submit(work, [*"abcdefghijkl"]) for _ in range(2)]  # a batch of each counts
        batcher.submit(work, ["m"])
        with pytest.raises(Refusal):
            batcher.submit(work, ["n"])
        batcher.drop(large[0])
        batcher.submit(work, ["n"])
        return batcher.waiting

    assert asyncio.run(run()) == 14


def test_models_do_not_share_batches():
    one, other = Recorder("one"), Recorder("other")

    async def run():
        batcher = batcher_of(4, 0.0, 100, 1000)
        jobs = [batcher.submit(recorder.work, [item]) for recorder, item in zip([one, other] * 2, "abcd")]
        running = asyncio.create_task(batcher.run())
        one.begin.set()
        other.begin.set()
        await asyncio.gather(*(job.done for job in jobs))
        running.cancel()

    asyncio.run(run())
    assert (one.batches, other.batches) == ([["a", "c"]], [["b", "d"]])
