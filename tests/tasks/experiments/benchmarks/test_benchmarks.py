"""Benchmarks: workers, a service, engines, F1 against length, peers, a device."""

import json
import os
import sys
from types import SimpleNamespace

import check_gpu
import pytest

from paddle_rope.native.library import library
from paddle_rope.native.products import why_no_bfloat16
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.experiments.benchmarks import device, service
from paddle_rope.tasks.experiments.benchmarks import worker as worker_module
from paddle_rope.tasks.experiments.benchmarks.entities import first_texts, join_neighbors
from paddle_rope.tasks.experiments.benchmarks.peers import measure_in_turns
from paddle_rope.tasks.experiments.benchmarks.prediction import compare
from paddle_rope.tasks.experiments.benchmarks.worker import Worker
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.demo import write_demo_corpus
from paddle_rope.tasks.ner.examples import Entity, Example
from tests.helpers.models import FORMATS, write_small_ner
from tests.tasks.serving.conftest import REPOSITORY, STUB, skip_without_extra

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
    monkeypatch.setattr(worker_module, "__package__", "a_package")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return lambda *arguments, **options: Worker("side", *arguments, is_prepared=False, **options)


def test_a_worker_answers_in_its_own_environment_or_says_why_it_cannot(new_worker, monkeypatch):
    monkeypatch.setenv("REMOVED", "1")
    with new_worker("well", ADDED="2", REMOVED=None) as worker:
        assert worker.ask(number=3) == {"twice": 6, "added": "2", "removed": None}
        with pytest.raises(InputError, match="status 1: TypeError"):
            worker.ask(nothing=1)
    for how, message in (("left out", "there is no such library"), ("fails", "status 3: it is tired")):
        with pytest.raises(InputError, match=message):
            new_worker(how)
    with pytest.raises(InputError, match="/nowhere/python cannot be started .*--peer_python"):
        new_worker("well", python="/nowhere/python")


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
    words = "service . --input texts.txt --output load.json --seconds 0.5 --connections 4 -- --max_queue 1"
    assert main(["benchmark", *words.split()]) == 0
    loads = json.loads((tmp_path / "load.json").read_text(encoding="utf-8"))["loads"]
    assert len(loads) == 3
    for load in loads:
        assert load["lost"] == 0 and load["sent"] == pytest.approx(load["answered"] + load["refused"], abs=0.2)
        assert 0 < load["p50"] <= load["p99"] and load["health_p99"] > 0
    assert loads[2]["refused"] > 0
    assert "stopped with status 0" in capsys.readouterr().out


# ---- engines
GRAPH = FORMATS[0]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(folder of the model, labeled file)"""
    train, dev = write_demo_corpus(tmp_path_factory.mktemp("corpus"), train_size=60, dev_size=30)
    folder = tmp_path_factory.mktemp("models") / "run" / "model"
    return write_small_ner(folder, read_examples(train), with_features=True, thresholds=2.0, max_characters=64), dev


@pytest.fixture
def measure(demo, tmp_path):
    """``measure(benchmark, *words)``: what it writes of the model."""

    def measure(benchmark, *words):
        model, data, output = *demo, tmp_path / "out.json"
        words = ["benchmark", benchmark, model, "--input", data, "--output", output, *words]
        assert main([*map(str, words)]) == 0
        return json.loads(output.read_text(encoding="utf-8"))

    return measure


@pytest.mark.slow
def test_each_engine_has_a_row_with_a_time_of_each_round(measure):
    measured = measure("prediction", "--engines", GRAPH, "--texts", 5, "--rounds", 2)
    assert measured["texts"] == 5 and measured["notes"] == []
    assert [row["engine"] for row in measured["rows"]] == ["eager", GRAPH]
    for row in measured["rows"]:
        assert len(row["turns"]) == 2 and all(min(turn.values()) > 0 for turn in row["turns"])
        assert row["first_answer_seconds"] > 0 and row["megabytes"] > 0
        assert row["changed"] == 0 and row["f1"] == measured["rows"][0]["f1"]


def test_predictions_are_compared_span_by_span():
    first = [[Entity(0, 2, "person", 1.0), Entity(3, 4, "place", 2.0)], [Entity(0, 1, "place", 1.0)]]
    second = [[Entity(0, 2, "person", 1.5), Entity(3, 4, "person", 2.0)], []]
    assert compare(first, first) == compare([[]], [[]]) == (0, 0)
    assert compare(first, second) == (1.0, 0.5)  # three spans are of one alone


# ---- F1 against length


def test_documents_hold_all_texts_with_their_entities(demo):
    examples = read_examples(demo[1])
    texts = first_texts(examples, 300)
    assert texts == examples[: len(texts)]
    assert sum(len(text.text) for text in texts[:-1]) < 300 <= sum(len(text.text) for text in texts)
    documents = join_neighbors(texts, 100)
    assert max(len(document.text) for document in documents) <= 100
    surfaces = [[one.surface(entity) for one in group for entity in one.entities] for group in (documents, texts)]
    assert surfaces[0] == surfaces[1]
    examples = [Example(text, (), "x:1") for text in ("一二三", "a", "b", "四五六七八九", "十", "")]
    joined = [document.text for document in join_neighbors(examples, 5)]
    assert joined == ["一二三a", "b", "四五六七八九", "十"]  # only a text alone is longer
    assert [one.text for one in join_neighbors([Example(text, (), "x:1") for text in "abc"], 4)] == ["a b", "c"]


@pytest.mark.parametrize("texts, joined, last", [
    (("去北京", "", "北京大学。"), "去北京北京大学。", (3, 7)),
    (("NBA", "2010年"), "NBA 2010年", (4, 8)),
    (("NBA", "在"), "NBA在", (3, 4)),
    (("NBA.", "A"), "NBA.A", (4, 5)),
    (("é", "A"), "éA", (1, 2)),
])  # fmt: skip
def test_joined_entities_keep_their_texts_and_only_ascii_words_are_kept_apart(texts, joined, last):
    end = min(4, len(texts[-1]))
    *first, final = [Example(text, (), f"x:{number}") for number, text in enumerate(texts)]
    (document,) = join_neighbors([*first, Example(final.text, (Entity(0, end, "a"),), "x:9")], 100)
    assert (document.text, document.where, document.entities[0][:2]) == (joined, "x:0", last)


def test_report_and_numbers_of_a_model(measure, capsys):
    words = ("--lengths", 50, 200, "--characters", 400, "--whole", "--names", "one", "--device", "cpu")
    numbers = measure("entities", *words)
    shown = capsys.readouterr().out
    cases = [(row["model"], row["reading"], row["length"]) for row in numbers["rows"]]
    assert cases == [("one", reading, length) for reading in ("default", "whole") for length in (None, 50, 200)]
    assert len({row["support"] for row in numbers["rows"]}) == 1
    alone, whole = numbers["rows"][0], numbers["rows"][3]  # texts that fit into the window are read whole in either way
    assert alone["correct"] == whole["correct"] and alone["predicted"] == whole["predicted"] > 0
    assert "\n| model | reads | alone | 50 | 200 |\n" in shown and f"| one | whole | {whole['f1']:.4f} |" in shown


# ---- peers

# Python of an environment of the dependency group peers
PEER_PYTHON = os.environ.get("PEER_PYTHON")
ENCODER = {"do": "encoder", "folder": "x"}


@pytest.mark.parametrize("name, good, bad", [("huggingface", 1.00001, 1.01), ("huggingface_bfloat16", 1.01, 1.2)])
def test_a_side_with_other_numbers_is_refused(name, good, bad):
    def measure(output):
        sides = {"plain": 1.0, name: output}
        workers = {side: SimpleNamespace(ask=lambda one=one, **_: {"output": [one]}) for side, one in sides.items()}
        measure_in_turns(workers, ENCODER, rounds=0)

    measure(good)
    for output in (bad, float("nan")):
        with pytest.raises(InputError, match="encoder differs"):
            measure(output)


@pytest.mark.slow
def test_all_sides_compute_the_same_and_are_in_the_file(tmp_path, capsys):
    """With Hugging Face only where PEER_PYTHON names a Python with PyTorch."""
    file = tmp_path / "peers.json"
    argv = ["--sizes", "1x64,2x3", "--linear", "5", "--rounds", "1", "--output", str(file)]
    assert main(["benchmark", "peers", *argv, *(["--peer_python", PEER_PYTHON] if PEER_PYTHON else [])]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [row["job"] for row in rows] == ["train", "predict", "attend"]
    linear = {"plain", *(["native"] if library() else []), *(["huggingface"] if PEER_PYTHON else [])}
    others = {"paddlenlp", "paddlenlp_as_installed", "products", *(["huggingface_bfloat16"] if PEER_PYTHON else [])}
    others |= {"native_bfloat16"} if why_no_bfloat16() is None else set()
    assert [set(row["turns"]) for row in rows] == [linear | others, linear | others, linear]
    assert PEER_PYTHON or "Hugging Face is left out" in capsys.readouterr().out


# ---- a device, here the CPU


def test_every_layer_is_right_and_the_file_holds_all_figures(tmp_path, capsys):
    file = tmp_path / "check.json"
    assert check_gpu.main(["--device", "cpu", "--output", str(file)]) == 0
    assert "every layer is within its bound" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["device"] == "cpu"
    layers = {row["layer"]: row for row in found["layers"]}
    assert {*device.attention_cases(), "loss of spans"} < set(layers)
    assert all(row["passes"] and row["output"] < 1e-5 and row.get("gradient", 0) < 1e-5 for row in layers.values())


@pytest.mark.parametrize("factor", [1.01, float("nan")])
def test_a_wrong_layer_is_named(factor, monkeypatch):
    cases = device.attention_cases() | {"RoPE": lambda q, k, v: q * (factor if "float32" in str(q.dtype) else 1)}
    monkeypatch.setattr(device, "attention_cases", lambda: cases)
    passes = {row["layer"]: row["passes"] for row in device.check_layers(["float32"])}
    assert not passes["RoPE"] and passes["RMS norm"]
