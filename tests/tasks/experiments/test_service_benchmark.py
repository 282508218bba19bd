"""The load test of a service, on one whose model does what its texts say."""

import json
import os
import sys
from pathlib import Path

import pytest

from tasks.experiments.benchmarks import service
from tasks.experiments.benchmarks.service import percentile
from tests.helpers.verbs import verb
from tests.tasks.serving.conftest import skip_without_extra

STUB = Path(__file__).resolve().parents[1] / "serving" / "stub_service.py"


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """What looks like the folder of a model; the service that is started on it needs no paddle."""
    skip_without_extra()
    folder = tmp_path / "stub"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    monkeypatch.setattr(service, "SERVE", [sys.executable, str(STUB)])
    monkeypatch.setenv("PYTHONPATH", str(STUB.parents[3]) + os.pathsep + os.environ.get("PYTHONPATH", ""))
    return folder


def test_every_request_is_answered_or_refused(stub, tmp_path, capsys):
    texts, output = tmp_path / "texts.txt", tmp_path / "load.json"
    texts.write_text("一\n二\n三\n", encoding="utf-8")
    argv = [stub, "--input", texts, "--output", output, "--seconds", 0.5, "--connections", 4, "--", "--max_queue", 1]
    assert verb("benchmark", "service").main(list(map(str, argv))) == 0
    measured = json.loads(output.read_text(encoding="utf-8"))
    assert measured["settings"]["options"] == ["--max_queue", "1"]
    loads = measured["loads"]
    assert [load["load"] for load in loads] == ["capacity, 4 connections", "50 %", "10 times"]
    for load in loads:
        assert load["lost"] == 0 and load["sent"] == pytest.approx(load["answered"] + load["refused"], abs=0.2)
        assert 0 < load["p50"] <= load["p95"] <= load["p99"] and load["health_p99"] > 0
    assert loads[2]["refused"] > 0 and loads[2]["refused_p99"] > 0
    printed = capsys.readouterr().out
    assert "stopped with status 0" in printed and "| 10 times |" in printed


def test_percentiles():
    assert [percentile([3.0, 1.0, 2.0, 4.0], share) for share in (50, 75, 99)] == [2.0, 3.0, 4.0]
    assert percentile([], 50) is None


def test_what_is_wrong_is_told_in_a_line(fails, tmp_path):
    (tmp_path / "texts.txt").write_text("一\n", encoding="utf-8")
    tool = verb("benchmark", "service")
    assert "no such folder" in fails(tool, "nowhere", "--input", "texts.txt")
    assert "missing.txt" in fails(tool, "nowhere", "--input", "missing.txt")
    assert "expected a whole number, 1 or more" in fails(tool, "nowhere", "--input", "texts.txt", "--texts", 0)
    assert "--seconds 0.0: must be more than 0" in fails(tool, "nowhere", "--input", "texts.txt", "--seconds", 0)
    assert "is an input too" in fails(tool, "nowhere", "--input", "texts.txt", "--output", "texts.txt")
    (tmp_path / "config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    assert "--max_queue 0: must be 1" in fails(tool, tmp_path, "--input", "texts.txt", "--", "--max_queue", 0)
