"""Workers of benchmarks: processes that answer requests."""

import pytest

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.experiments.worker import Worker

WORKER = """
import os, sys
from paddle_rope.tasks.common.errors import InputError

def start(how):
    print("noise of a library")
    if how == "left out":
        raise InputError("there is no such library")
    if how == "fails":
        print("it is tired", file=sys.stderr)
        sys.exit(3)
    def respond(number):
        print("more noise")
        return {"twice": 2 * number, "added": os.environ.get("ADDED"), "removed": os.environ.get("REMOVED")}
    return {}, respond
"""


@pytest.fixture
def new_worker(tmp_path, monkeypatch):
    (tmp_path / "a_package").mkdir()
    (tmp_path / "a_package" / "side.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return lambda *arguments, **options: Worker("a_package.side", *arguments, is_prepared=False, **options)


def test_a_worker_answers_in_its_own_environment_or_says_why_it_cannot(new_worker, monkeypatch):
    monkeypatch.setenv("REMOVED", "1")
    with new_worker("well", ADDED="2", REMOVED=None) as worker:
        assert worker.ask(number=3) == {"twice": 6, "added": "2", "removed": None}
        with pytest.raises(InputError, match="status 1: TypeError"):
            worker.ask(nothing=1)
    for how, message in (("left out", "there is no such library"), ("fails", "status 3: it is tired")):
        with pytest.raises(InputError, match=message):
            new_worker(how)
    with pytest.raises(InputError, match="/nowhere/python cannot be started .*another Python"):
        new_worker("well", python="/nowhere/python")
