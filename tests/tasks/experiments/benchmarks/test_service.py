"""The load test of a service, on one whose model does what its texts say."""

import json
import sys

import pytest

from tasks.experiments.benchmarks import service
from tasks.experiments.benchmarks.service import percentile
from tests.helpers.verbs import verb
from tests.tasks.serving.conftest import REPOSITORY, STUB, skip_without_extra


@pytest.mark.slow
def test_every_request_is_answered_or_refused(tmp_path, monkeypatch, capsys):
    skip_without_extra()
    (tmp_path / "config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    monkeypatch.setattr(service, "SERVE", [sys.executable, str(STUB)])
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    texts, output = tmp_path / "texts.txt", tmp_path / "load.json"
    texts.write_text("一\n二\n三\n", encoding="utf-8")
    argv = [tmp_path, "--input", texts, "--output", output, "--seconds", 0.5, "--connections", 4]
    assert verb("benchmark", "service").main(list(map(str, [*argv, "--", "--max_queue", 1]))) == 0
    loads = json.loads(output.read_text(encoding="utf-8"))["loads"]
    assert len(loads) == 3
    for load in loads:
        assert load["lost"] == 0 and load["sent"] == pytest.approx(load["answered"] + load["refused"], abs=0.2)
        assert 0 < load["p50"] <= load["p95"] <= load["p99"] and load["health_p99"] > 0
    assert loads[2]["refused"] > 0 and loads[2]["refused_p99"] > 0
    assert "stopped with status 0" in capsys.readouterr().out


def test_percentiles():
    assert [percentile([3.0, 1.0, 2.0, 4.0], share) for share in (50, 75, 99)] == [2.0, 3.0, 4.0]
    assert percentile([], 50) is None


@pytest.mark.parametrize(
    "words, said",
    [
        (["nowhere", "--input", "texts.txt"], "nowhere: no such folder"),
        (["nowhere", "--input", "missing.txt"], "missing.txt"),
        (["nowhere", "--input", "texts.txt", "--texts", 0], "--texts"),
        (["nowhere", "--input", "texts.txt", "--seconds", 0], "--seconds 0.0"),
        (["nowhere", "--input", "texts.txt", "--output", "texts.txt"], "texts.txt: is an input"),
        ([".", "--input", "texts.txt", "--", "--max_queue", 0], "--max_queue 0"),
    ],
)
def test_wrong_words_are_refused_in_one_line(fails, tmp_path, words, said):
    (tmp_path / "texts.txt").write_text("一\n", encoding="utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    assert said in fails(verb("benchmark", "service"), *words)
