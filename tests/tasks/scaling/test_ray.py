"""The same parts on Ray."""

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from tasks.scaling.run import run_documents
from tasks.scaling.worker import Job
from tests.helpers.verbs import verb
from tests.tasks.scaling.conftest import write_jsonl

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'paddle_rope[ray]'")


@pytest.fixture
def given(tmp_path, model, texts):
    """Words of a command for 40 texts."""
    write_jsonl(tmp_path / "in.jsonl", [{"id": number, "text": text} for number, text in enumerate(texts)])
    return [str(model), "--input", str(tmp_path / "in.jsonl"), "--part_records", "5", "--device", "cpu"]


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).glob("*.jsonl")}


def test_ray_writes_what_processes_write(given, tmp_path, capfd):
    for output, more in (("one", ["--processes", "1"]), ("two", ["--ray", "--processes", "2"])):
        assert verb("predict").main([*given, "--output", str(tmp_path / output), *more]) == 0
        assert "40 documents in 8 parts" in capfd.readouterr().out
    assert len(files(tmp_path / "one")) == 8
    assert files(tmp_path / "two") == files(tmp_path / "one")


def test_a_killed_actor_loses_nothing(given, tmp_path, model, texts):
    from tasks.scaling.on_ray import run_on_ray

    killed = []

    def run(job, parts, events):
        done = events.done

        def kill_another(one):
            done(one)
            if not killed:
                children = psutil.Process().children(recursive=True)
                killed.append(next(child.pid for child in children if "ray::_Actor" in " ".join(child.cmdline())))
                os.kill(killed[0], signal.SIGKILL)

        events.done = kill_another
        run_on_ray(job, parts, events, 2)

    job = Job("ner", (str(model),), str(tmp_path / "out"), chunk_records=4, options={"device": "cpu"})
    assert run_documents(job, [str(tmp_path / "in.jsonl")], 5, run) == 0
    found = [json.loads(line) for content in files(tmp_path / "out").values() for line in content.decode().splitlines()]
    assert killed and sorted(record["id"] for record in found) == list(range(len(texts)))


def test_wrong_models_and_clusters_are_told(given, tmp_path, fails):
    (tmp_path / "model").mkdir()
    words = [*given[1:], "--output", "out", "--ray"]
    assert "model: no model here" in fails(verb("predict", "model"), *words)
    assert "--ray 127.0.0.1:1: no cluster there" in fails(verb("predict"), *given[:1], *words, "127.0.0.1:1")
