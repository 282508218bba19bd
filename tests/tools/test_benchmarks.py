"""Benchmarks of a service, of engines, and beside peers."""

import json
import os
import sys
from types import SimpleNamespace

import pytest

from paddle_rope.native.library import library
from paddle_rope.native.products import why_no_bfloat16
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.ner.examples import Entity
from tests.helpers.models import FORMATS, write_demo_ner
from tests.tasks.serving.conftest import REPOSITORY, STUB, skip_without_extra
from tools.benchmarks import peers, prediction, service


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(folder of the model, labeled file)"""
    return write_demo_ner(tmp_path_factory.mktemp("demo"))


@pytest.mark.parametrize("main, words, said", [
    (peers.main, "--sizes 4x250", "--sizes"),
    (peers.main, "--sizes 1x1", "--sizes"),
    (peers.main, "--rounds 0", "--rounds"),
    (peers.main, "--sides huggingface", "--sides"),
    (prediction.main, "nowhere --input missing", "missing"),
    (service.main, "nowhere --input texts", "nowhere: no such folder"),
    (service.main, "nowhere --input missing.txt", "missing.txt"),
    (service.main, "nowhere --input texts --seconds 0", "--seconds 0.0"),
    (service.main, "nowhere --input texts --output texts", "texts: is among the other files"),
    (service.main, "NER --input texts -- --max_queue 0", "--max_queue must be"),
])  # fmt: skip
def test_mistakes_are_one_line_with_status_2(demo, tmp_path, monkeypatch, capsys, main, words, said):
    if main is service.main:
        skip_without_extra()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").write_text("一\n", encoding="utf-8")
    assert main([str(demo[0]) if word == "NER" else word for word in words.split()]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and said in error
    assert [path.name for path in tmp_path.iterdir()] == ["texts"]


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder with what looks like a model, and texts."""
    skip_without_extra()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    (tmp_path / "texts.txt").write_text("一\n二\n三\n", encoding="utf-8")


@pytest.mark.slow
def test_every_request_to_a_service_is_answered_or_refused(served, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(service, "SERVE", [sys.executable, str(STUB)])
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    words = ". --input texts.txt --output load.json --seconds 0.5 --connections 4 -- --max_queue 1"
    assert service.main(words.split()) == 0
    loads = json.loads((tmp_path / "load.json").read_text(encoding="utf-8"))["loads"]
    assert len(loads) == 3
    for load in loads:
        assert load["lost"] == 0 and load["sent"] == pytest.approx(load["answered"] + load["refused"], abs=0.2)
        assert 0 < load["p50"] <= load["p99"] and load["health_p99"] > 0
    assert loads[2]["refused"] > 0
    assert "stopped with status 0" in capsys.readouterr().out


# ---- engines
GRAPH = FORMATS[0]


@pytest.mark.slow
def test_each_engine_has_a_row_with_a_time_of_each_round(demo, tmp_path):
    (model, data), output = demo, tmp_path / "out.json"
    words = [model, "--input", data, "--engines", GRAPH, "--texts", 5, "--rounds", 2, "--output", output]
    assert prediction.main([*map(str, words)]) == 0
    measured = json.loads(output.read_text(encoding="utf-8"))
    assert measured["texts"] == 5 and measured["notes"] == []
    assert [row["engine"] for row in measured["rows"]] == ["eager", GRAPH]
    for row in measured["rows"]:
        assert len(row["turns"]) == 2 and all(min(turn.values()) > 0 for turn in row["turns"])
        assert row["first_answer_seconds"] > 0 and row["megabytes"] > 0
        assert row["changed"] == 0 and row["f1"] == measured["rows"][0]["f1"]


def test_predictions_are_compared_span_by_span():
    first = [[Entity(0, 2, "person", 1.0), Entity(3, 4, "place", 2.0)], [Entity(0, 1, "place", 1.0)]]
    second = [[Entity(0, 2, "person", 1.5), Entity(3, 4, "person", 2.0)], []]
    assert prediction.compare(first, first) == prediction.compare([[]], [[]]) == (0, 0)
    assert prediction.compare(first, second) == (1.0, 0.5)  # three spans are of one alone


# ---- peers

# Python of an environment of the dependency group peers
PEER_PYTHON = os.environ.get("PEER_PYTHON")
ENCODER = {"do": "encoder", "folder": "x"}


@pytest.mark.parametrize("name, good, bad", [("huggingface", 1.00001, 1.01), ("huggingface_bfloat16", 1.01, 1.2)])
def test_a_side_with_other_numbers_is_refused(name, good, bad):
    def measure(output):
        sides = {"plain": 1.0, name: output}
        workers = {side: SimpleNamespace(ask=lambda one=one, **_: {"output": [one]}) for side, one in sides.items()}
        peers.measure_in_turns(workers, ENCODER, rounds=0)

    measure(good)
    for output in (bad, float("nan")):
        with pytest.raises(InputError, match="encoder differs"):
            measure(output)


@pytest.mark.slow
def test_all_sides_compute_the_same_and_are_in_the_file(tmp_path, capsys):
    """With Hugging Face only where PEER_PYTHON names a Python with PyTorch."""
    file = tmp_path / "peers.json"
    argv = ["--sizes", "1x64,2x3", "--linear", "5", "--rounds", "1", "--output", str(file)]
    assert peers.main([*argv, *(["--peer_python", PEER_PYTHON] if PEER_PYTHON else [])]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [row["job"] for row in rows] == ["train", "predict", "attend"]
    linear = {"plain", *(["native"] if library() else []), *(["huggingface"] if PEER_PYTHON else [])}
    others = {"paddlenlp", "paddlenlp_as_installed", "products", *(["huggingface_bfloat16"] if PEER_PYTHON else [])}
    others |= {"native_bfloat16"} if why_no_bfloat16() is None else set()
    assert [set(row["turns"]) for row in rows] == [linear | others, linear | others, linear]
    assert PEER_PYTHON or "Hugging Face is left out" in capsys.readouterr().out
