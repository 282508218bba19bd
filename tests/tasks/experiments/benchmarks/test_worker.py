"""Workers: processes that answer requests."""

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
        return {"twice": 2 * number, "added": os.environ.get("ADDED"), "removed": os.environ.get("REMOVED")}
    return {"how": how}, respond
"""


@pytest.fixture
def new_worker(tmp_path, monkeypatch):
    (tmp_path / "a_package").mkdir()
    (tmp_path / "a_package" / "side.py").write_text(PROGRAM)
    monkeypatch.setattr(worker_module, "__package__", "a_package")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return lambda *arguments, **options: Worker("side", *arguments, is_prepared=False, **options)


def test_a_worker_answers_each_request_in_its_own_environment(new_worker, monkeypatch):
    monkeypatch.setenv("REMOVED", "1")
    with new_worker("well", ADDED="2", REMOVED=None) as worker:
        assert worker.first == {"how": "well"}
        assert worker.ask(number=3) == {"twice": 6, "added": "2", "removed": None}
        assert worker.ask(number=4)["twice"] == 8
        for request in ({"nothing": 1}, {"number": 1}):  # it ends with the first of them
            with pytest.raises(InputError, match="status 1: TypeError"):
                worker.ask(**request)


@pytest.mark.parametrize(
    "how, options, message",
    [
        ("left out", {}, "there is no such library"),
        ("fails", {}, "status 3: it is tired"),
        ("well", {"python": "/nowhere/python"}, "/nowhere/python cannot be started .*--peer_python"),
    ],
)
def test_a_worker_that_cannot_work_says_why(new_worker, how, options, message):
    with pytest.raises(InputError, match=message):
        new_worker(how, **options)
