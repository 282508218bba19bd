"""A slice of the kill test; all of it is ``python -m tests.kill``."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kill.__main__ import compare
from tests.kill.moments import draw

REPOSITORY = Path(__file__).resolve().parents[2]
KILLED = """
import json, os
from tests.kill.moments import Zone

class Work:
    def do(self):
        for number in range(3):
            len("event")

def count(target):
    zone = Zone("__main__:Work.do", target)
    Work().do()
    Work().do()
    return zone.events

child = os.fork()
if not child:
    count((1, 2))
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps([status, count(None)]))
"""


def run(*words):
    command, environment = [sys.executable, *words], {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_process_ends_at_the_moment_that_was_drawn():
    status, events = json.loads(run("-c", KILLED))
    assert status == -signal.SIGKILL
    assert len(events) == 2 and events[0] == events[1] >= 8
    moments = [draw(random.Random(seed), [1, 5, 2]) for seed in range(200)]
    assert {call for call, _ in moments} == {0, 1, 2}
    assert {event for call, event in moments if call == 1} == set(range(5))


def test_differences_are_named():
    assert compare({"a": 1, "b": 2}, {"a": 1, "b": 2}) == ""
    assert compare({"a": 1, "b": 2}, {"a": 2, "c": 2}) == "differs: a, c, b"


@pytest.mark.slow
def test_killed_works_end_as_undisturbed_ones():
    shown = run("-m", "tests.kill", "--kills", "2", "--seed", "0", "--works", "save,download")
    assert shown.count(": equal\n") == 2
