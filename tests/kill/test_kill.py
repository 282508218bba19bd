"""A slice of the kill test; all of it is ``python -m tests.kill``."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kill.__main__ import compare
from tests.kill.moments import Zone, draw

REPOSITORY = Path(__file__).resolve().parents[2]


class Work:
    """Something to kill."""

    def do(self):
        for _ in range(3):
            len("event")


def work(target, link):
    """Do it twice, in a process of its own, and tell the events."""
    zone = Zone(f"{__name__}:Work.do", target)
    Work().do()
    Work().do()
    link.send(zone.events)


def work_apart(target):
    """(exit status, events or None)"""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe()
    process = context.Process(target=work, args=(target, sending))
    process.start()
    process.join()
    return process.exitcode, receiving.recv() if receiving.poll() else None


def test_process_ends_at_the_moment_that_was_drawn():
    assert work_apart((1, 2)) == (-signal.SIGKILL, None)
    status, events = work_apart(None)
    assert status == 0 and len(events) == 2 and events[0] == events[1] >= 8
    moments = [draw(random.Random(seed), [1, 5, 2]) for seed in range(200)]
    assert {call for call, _ in moments} == {0, 1, 2}
    assert {event for call, event in moments if call == 1} == set(range(5))


def test_differences_are_named():
    assert compare({"a": 1, "b": 2}, {"a": 1, "b": 2}) == ""
    assert compare({"a": 1, "b": 2}, {"a": 2, "c": 2}) == "differs: a, c, b"


@pytest.mark.slow
def test_killed_works_end_as_undisturbed_ones():
    words = [sys.executable, "-m", "tests.kill", "--kills", "2", "--seed", "0", "--works", "save,download"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(words, env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count(": equal\n") == 2, done.stdout + done.stderr
