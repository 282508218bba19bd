"""The same parts on Ray."""

import json
import os
import signal

import psutil
import pytest

from tasks.commands.main import main
from tasks.scaling.run import run_documents
from tasks.scaling.worker import Job
from tests.tasks.scaling.conftest import files, write_jsonl

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'paddle_rope[ray]'")
pytestmark = pytest.mark.slow


@pytest.fixture
def words(tmp_path, model, texts):
    """Words of a command for 40 texts."""
    write_jsonl(tmp_path / "in.jsonl", [{"id": number, "text": text} for number, text in enumerate(texts)])
    return [str(model), "--input", str(tmp_path / "in.jsonl"), "--part_records", "5", "--device", "cpu"]


def test_ray_writes_what_processes_write(words, tmp_path):
    for output, more in (("one", ["--processes", "1"]), ("two", ["--ray", "--processes", "2"])):
        assert main(["predict", *words, "--output", str(tmp_path / output), *more]) == 0
    assert len(files(tmp_path / "one")) == 8 and files(tmp_path / "two") == files(tmp_path / "one")


def test_a_killed_actor_loses_nothing(words, tmp_path, model, texts):
    from tasks.scaling.on_ray import run_on_ray

    killed = []

    def run(job, parts):
        for done in run_on_ray(job, parts, 2):
            yield done
            if done and not killed:
                children = psutil.Process().children(recursive=True)
                killed.append(next(child.pid for child in children if "ray::_Actor" in " ".join(child.cmdline())))
                os.kill(killed[0], signal.SIGKILL)

    job = Job("ner", (str(model),), str(tmp_path / "out"), chunk_records=4, options={"device": "cpu"})
    assert run_documents(job, [str(tmp_path / "in.jsonl")], 5, run) == 0
    found = [json.loads(line) for content in files(tmp_path / "out").values() for line in content.decode().splitlines()]
    assert killed and sorted(record["id"] for record in found) == list(range(len(texts)))


def test_wrong_models_and_clusters_are_told(words, tmp_path, refused):
    (tmp_path / "model").mkdir()
    more = [*words[1:], "--output", "out", "--ray"]
    assert "model: no model here" in refused("predict", "model", *more)
    assert "--ray 127.0.0.1:1: no cluster" in refused("predict", words[0], *more, "127.0.0.1:1")
