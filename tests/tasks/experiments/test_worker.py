"""Workers: processes that answer requests."""

import sys

import pytest

from tasks.common.errors import InputError
from tasks.experiments.benchmarks import worker as worker_module
from tasks.experiments.benchmarks.worker import Worker

PROGRAM = """
import os, sys
from tasks.common.errors import InputError

def start(how):
    print("noise of a library")
    if how == "left out":
        raise InputError("there is no such library")
    if how == "fails":
        print("it is tired", file=sys.stderr)
        sys.exit(3)
    def respond(number):
        print("more noise")
        return {"twice": 2 * number, "added": os.environ.get("ADDED"), "taken": os.environ.get("TAKEN")}
    return {"how": how}, respond
"""


@pytest.fixture
def new_worker(tmp_path, monkeypatch):
    (tmp_path / "a_package").mkdir()
    (tmp_path / "a_package" / "side.py").write_text(PROGRAM)
    monkeypatch.setattr(worker_module, "__package__", "a_package")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def new(*arguments, **options):
        return Worker("side", *arguments, is_prepared=False, **options)

    return new


def test_a_worker_answers_each_request_in_its_own_environment(new_worker, monkeypatch):
    monkeypatch.setenv("TAKEN", "1")
    with new_worker("well", ADDED="2", TAKEN=None) as worker:
        assert worker.first == {"how": "well"}
        assert worker.ask(number=3) == {"twice": 6, "added": "2", "taken": None}
        assert worker.ask(number=4)["twice"] == 8
        with pytest.raises(InputError, match="status 1: TypeError: .*an unexpected keyword argument 'nothing'"):
            worker.ask(nothing=1)
        with pytest.raises(InputError, match="status 1"):
            worker.ask(number=1)


@pytest.mark.parametrize(
    "how, message",
    [("left out", "there is no such library"), ("fails", "its process failed with status 3: it is tired")],
)
def test_a_worker_that_cannot_work_says_why(new_worker, how, message):
    with pytest.raises(InputError, match=message):
        new_worker(how)


def test_a_python_that_cannot_be_started_is_one_line(new_worker):
    with pytest.raises(InputError, match="/nowhere/python cannot be started .*give another --peer_python"):
        new_worker("well", python="/nowhere/python")
    assert sys.executable != "/nowhere/python"
