"""The benchmark of prediction: engines in processes of their own find the same entities."""

import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from paddle_rope import CharTokenizer
from paddle_rope.__main__ import main
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.prediction import measured as prediction
from tasks.experiments.benchmarks.prediction.measured import (
    EngineWorker,
    as_table,
    compare,
    measure_engines,
    measure_in_turns,
    read_input,
)
from tasks.ner.data.reading import read_examples
from tasks.ner.demo import write_demo_corpus
from tasks.ner.examples import Entity
from tasks.ner.features import FEATURE_KINDS, WordFeatures
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.predictor import NerPredictor
from tests.exports import FORMATS
from tests.roformer.small_models import randomise

GRAPH = "onnx" if "onnx" in FORMATS else "paddle"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(folder of an untrained model with word features, labeled file)"""
    train, dev = write_demo_corpus(tmp_path_factory.mktemp("corpus"), train_size=30, dev_size=6)
    examples = read_examples(train)
    tokenizer = CharTokenizer.from_corpus(example.text for example in examples)
    features = WordFeatures.from_examples(examples, FEATURE_KINDS)
    sizes = {"embedding_size": 16, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    # an untrained model with scores that differ, of which few are found
    model = NerModel(
        NerConfig(
            types=["person", "place"], vocab_size=len(tokenizer), intermediate_size=32, head_size=8, thresholds=1.0,
            features=features.sizes, max_tokens=64, **sizes,
        )
    )  # fmt: skip
    randomise(model, 0.5)
    folder = tmp_path_factory.mktemp("model")
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    features.save_pretrained(folder)
    return folder, dev


@pytest.fixture(scope="module")
def measured(demo, tmp_path_factory):
    """What the verb measures of the trained model and of a graph, and what it prints."""
    model, data = demo
    output = tmp_path_factory.mktemp("measured") / "measured.json"
    words = ["benchmark", "prediction", str(model), "--input", str(data), "--output", str(output)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction, "COLD_STARTS", 2)
        assert main([*words, "--engines", GRAPH, "--texts", "5", "--rounds", "2"]) == 0
    return json.loads(output.read_text(encoding="utf-8"))


def test_each_engine_has_a_row_with_a_time_of_each_round(measured):
    assert [row["engine"] for row in measured["rows"]] == ["eager", GRAPH]
    assert measured["texts"] == 5 and measured["notes"] == []
    for row in measured["rows"]:
        assert all(len(row[key]) == 2 for key in ("seconds", "processor_seconds", "reading_seconds", "ratios"))
        assert all(seconds > 0 for key in ("seconds", "reading_seconds") for seconds in row[key])
        assert len(row["first_answer_seconds"]) == 2 and min(row["first_answer_seconds"]) > 0
        assert row["version"] and row["megabytes"] > 0
    assert measured["rows"][0]["ratios"] == [1, 1]


def test_a_graph_finds_the_entities_of_the_trained_model(measured, demo):
    eager, graph = measured["rows"]
    assert graph["changed"] == 0 and graph["score_difference"] < 1e-4
    assert graph["f1"] == eager["f1"]
    texts = [example.text for example in read_examples(demo[1])][:5]
    assert any(NerPredictor(demo[0], "cpu").find(texts))  # there is something to find


def test_the_table_shows_medians():
    row = {
        "title": "Engine", "version": "1.0", "threads": 2, "seconds": [1, 9, 2], "reading_seconds": [0.5, 1, 1],
        "ratios": [3, 1, 2], "changed": 0.01, "f1": 0.5, "megabytes": 1.5, "first_answer_seconds": [4, 2, 3],
    }  # fmt: skip
    table = as_table({"texts": 100, "rows": [row]})
    assert table.splitlines()[-1] == "| Engine 1.0 | 2 | 50 | 2.00 | 100 | 50% | 1.00% | 0.5000 | 1.5 | 3.00 |"


def test_predictions_are_compared_span_by_span():
    first = [[Entity(0, 2, "person", 1.0), Entity(3, 4, "place", 2.0)], [Entity(0, 1, "place", 1.0)]]
    second = [[Entity(0, 2, "person", 1.5), Entity(3, 4, "person", 2.0)], []]
    assert compare(first, first) == (0, 0)
    assert compare(first, second) == (1.0, 0.5)  # three spans are of one alone
    assert compare([[]], [[]]) == (0, 0)


def worker_that_finds(entities):
    answer = {"seconds": 1.0, "processor_seconds": 1.0, "reading_seconds": 0.5, "entities": [entities]}
    return SimpleNamespace(
        first={"version": "1", "first_answer_seconds": [1.0]}, predict=lambda: {**answer, "entities": [list(entities)]}
    )


@pytest.mark.parametrize("name, stays", [("paddle", False), ("onnx_int8", True)])
def test_an_engine_that_finds_something_else_is_left_out_unless_it_rounds(name, stays):
    spans = [(start, start + 1, "person", 1.0) for start in range(4)]
    notes = []
    workers = {"eager": worker_that_finds(spans), name: worker_that_finds(spans[1:])}
    rows = measure_in_turns(workers, None, 1, notes, {"threads": 1})
    assert [row["engine"] for row in rows] == ["eager", *([name] if stays else [])]
    assert [row["changed"] for row in rows] == [0, *([0.25] if stays else [])]
    assert stays or "25.00% of the spans differ" in notes[0]


def test_a_python_that_cannot_be_started_is_said_in_a_line(tmp_path):
    with pytest.raises(InputError, match="/nowhere/python cannot be started .*give another --peer_python"):
        EngineWorker("/nowhere/python", "torch", tmp_path, tmp_path / "texts.json", {})


def test_an_engine_that_fails_says_its_last_line(tmp_path):
    with pytest.raises(InputError, match="its process failed with status 1: FileNotFoundError.*texts.json"):
        EngineWorker(sys.executable, "onnx", tmp_path, tmp_path / "texts.json", {})


def test_texts_without_labels_have_no_f1(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("去年他来过雁潭市。\n我买了一台电脑。\n好\n", encoding="utf-8")
    notes = []
    assert read_input(file, 2, notes) == (None, ["去年他来过雁潭市。", "我买了一台电脑。"])
    assert "texts without labels" in notes[0]
    spans = [(0, 1, "person", 1.0)]
    assert measure_in_turns({"eager": worker_that_finds(spans)}, None, 1, [], {})[0]["f1"] is None


@pytest.mark.parametrize("option", ["rounds", "texts", "batch_size"])
def test_numbers_below_one_are_refused(option, demo):
    with pytest.raises(InputError, match=f"--{option} 0: must be at least 1"):
        measure_engines(*demo, **{option: 0})
    with pytest.raises(InputError, match="--threads 0"):
        measure_engines(*demo, threads=[1, 0])


@pytest.mark.parametrize("span_head", ["efficient", "dense"])
def test_the_model_in_pytorch_is_the_same(span_head, demo, tmp_path, monkeypatch):
    monkeypatch.setattr(prediction, "COLD_STARTS", 1)
    python = os.environ.get("PEER_PYTHON")
    if not python or GRAPH != "onnx":
        pytest.skip("PEER_PYTHON, a Python with requirements-peers.txt, is not set, or this Paddle writes no ONNX")
    model = demo[0]
    if span_head == "dense":
        config = NerConfig.from_pretrained(str(model), span_head="dense", features=None)
        NerModel(config).save_pretrained(str(tmp_path))
        CharTokenizer.from_pretrained(model).save_pretrained(str(tmp_path))
        model = tmp_path
    result = measure_engines(model, demo[1], ["torch"], rounds=1, peer_python=python)
    assert result["notes"] == []
    assert result["rows"][1]["score_difference"] < 1e-4 and result["rows"][1]["changed"] == 0
    assert np.isfinite(result["rows"][1]["ratios"]).all()
