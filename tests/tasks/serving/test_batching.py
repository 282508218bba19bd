"""What is computed together, and in which order."""

import asyncio
import dataclasses
import threading
import time

import pytest

from paddle_rope.tasks.serving.batching import BATCH_TOKENS, Batcher
from paddle_rope.tasks.serving.models import Work
from paddle_rope.tasks.serving.settings import ServiceSettings


class Recorder:
    """Work that notes its batches, and waits before the first one until it may begin. ``more`` goes to the work."""

    def __init__(self, *more, model="m"):
        self.batches, self.begin = [], threading.Event()
        self.work = Work(model, "predict", self.compute, *more)

    def compute(self, items):
        assert self.begin.wait(60)
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("bad")
        return [f"<{item}>" for item in items]


def compute(requests, batch_size=4, **bounds):
    """The result (or the words of the exception) of each request, a pair of a recorder and items. All are submitted
    before the first batch begins."""

    async def run():
        batcher = Batcher(ServiceSettings(models=(), batch_size=batch_size, max_wait_ms=0.0, **bounds))
        jobs = [batcher.submit(recorder.work, items) for recorder, items in requests]
        running = asyncio.create_task(batcher.run())
        for recorder, _ in requests:
            recorder.begin.set()
        outcomes = await asyncio.gather(*(job.done for job in jobs), return_exceptions=True)
        running.cancel()
        assert batcher.waiting == 0
        return [job.results if outcome is None else str(outcome) for job, outcome in zip(jobs, outcomes)]

    return asyncio.run(run())


LONG = "x" * (BATCH_TOKENS // 2)


@pytest.mark.parametrize("requests, batches", [
    (["ab", "cde", "f"], [[*"abcf"], [*"de"]]),
    (["abcdefghi", "jklmnopqr", *"123456"], [[*"aj12"], [*"3456"], [*"bckl"]]),
    ([[LONG, "a", "b"], [LONG]], [[LONG, LONG], ["a", "b"]]),
    ([["a", "b", LONG, "c"]], [["a", "b"], [LONG, "c"]]),
    ([[(LONG, LONG)] * 2], [[(LONG, LONG)]] * 2),
], ids=["filled in turn", "small ones first", "padding", "padding of a request", "pairs"])  # fmt: skip
def test_requests_fill_batches_in_turn(requests, batches):
    recorder = Recorder()
    results = compute([(recorder, list(items)) for items in requests])
    assert recorder.batches[: len(batches)] == batches
    assert results == [[f"<{item}>" for item in items] for items in requests]


@pytest.mark.parametrize("wait, items, batches", [
    (60_000, "ab", [["a", "b"]]),  # full, so it does not wait
    (60_000, "a", []),
    (600, "a", [["a"]]),
])  # fmt: skip
def test_a_batch_starts_when_it_is_full_or_its_oldest_item_has_waited(wait, items, batches):
    recorder, other = Recorder(), Recorder(model="other")
    recorder.begin.set()

    async def run():
        batcher = Batcher(ServiceSettings(models=(), batch_size=2, max_wait_ms=wait))
        jobs = [batcher.submit(recorder.work, [item]).done for item in items]
        batcher.submit(other.work, ["c"])  # does not fill a batch of another model
        running = asyncio.create_task(batcher.run())
        await asyncio.wait(jobs, timeout=30 if batches else 0.1)
        running.cancel()
        other.begin.set()
        return [job.done() for job in jobs]

    assert asyncio.run(run()) == [bool(batches)] * len(items) and recorder.batches == batches


def test_long_texts_are_computed_by_windows_in_turn_with_others():
    def windows(text):
        return [(text[start : start + 2], 2) for start in range(0, len(text), 2)]

    recorder = Recorder(windows, lambda text, found: f"{text}: {'+'.join(found)}")
    results = compute([(recorder, items) for items in (["abcdefgh"], ["ij", "kl"], ["mn"])], batch_size=3)
    assert results == [["abcdefgh: <ab>+<cd>+<ef>+<gh>"], ["ij: <ij>", "kl: <kl>"], ["mn: <mn>"]]
    assert recorder.batches == [["ab", "ij", "mn"], ["cd", "ef", "kl"], ["gh"]]


def test_an_error_is_only_that_of_its_request():
    def fails_at(text):
        def function(item, *found):
            if item == text:
                raise ValueError(text)
            return found[0][0] if found else [(item, len(item))]

        return function

    recorder = Recorder(fails_at("unread"), fails_at("unjoined"))
    requests = (["a"], ["b", "unread"], ["unjoined"], ["bad", *"defghi"], ["c"])
    results = compute([(recorder, items) for items in requests], batch_size=5)
    assert results == [["<a>"], "unread", "unjoined", "bad", ["<c>"]]
    assert not {*"fghi"} & {item for batch in recorder.batches for item in batch}  # the rest of the failed request


def test_the_thread_computes_for_nobody_who_has_waited_too_long():
    def read_for_long(text):
        yield text, 1
        time.sleep(0.3)
        yield from [(text, 1)] * 9

    recorder = Recorder(read_for_long)
    assert compute([(recorder, ["a"]), (recorder, [])], max_seconds=0.2) == ["503: no answer within 0.2 s", []]
    assert recorder.batches == [["a", "a"]]


def test_a_result_is_made_when_its_pieces_are_there_and_an_answer_is_bounded():
    made = []

    def join(text, found):
        made.append(text)
        return found[0]

    recorder = Recorder(lambda text: [(text, 1)], join)
    long = ["x" * 20] * 9  # of each <x...x>, so that the third one is too much
    outcomes = compute([(recorder, long), (recorder, ["y"])], batch_size=2, max_body_bytes=12)
    assert outcomes == ["the answer is larger than 60 bytes; send less at once", ["<y>"]]
    assert len(made) == 4 and len(recorder.batches) < 5


@pytest.mark.parametrize("bound, dictionary, requests", [
    ({"max_queue": 3}, 0, ["ab", "cdefg"]),
    ({"max_queue_characters": 3}, 0, ["ab", "cdefg"]),
    ({"max_queue_characters": 12}, 5, ["a", "b"]),
    ({"max_queue": 9}, 0, ["abcdefghijkl", "abcdefghijkl", "m"]),  # many items of a request count as one batch
])  # fmt: skip
def test_a_full_queue_refuses_but_a_request_is_taken_whole(bound, dictionary, requests):
    async def run():
        batcher = Batcher(ServiceSettings(models=(), batch_size=4, **bound))
        work = dataclasses.replace(Recorder().work, dictionary=dictionary)
        jobs = []
        for items in requests:
            assert not batcher.is_full()
            jobs.append(batcher.submit(work, [*items]))
        assert batcher.is_full()
        batcher.drop(jobs[0])
        assert batcher.waiting == sum(map(len, requests[1:]))
        batcher.drop(jobs[1])
        assert not batcher.is_full()

    asyncio.run(run())
