"""Engines in processes of their own find the same entities."""

import json

import pytest

from tasks.commands.main import main
from tasks.experiments.benchmarks import prediction
from tasks.experiments.benchmarks.prediction import compare
from tasks.ner.data.reading import read_examples
from tasks.ner.demo import write_demo_corpus
from tasks.ner.examples import Entity
from tests.helpers.exports import FORMATS
from tests.helpers.small_ner import write_small_ner

GRAPH = FORMATS[0]
SPANS = [(start, start + 1, "person", 1.0) for start in range(4)]


@pytest.fixture
def measure(tmp_path):
    """``measure(*words)``: what is written of an untrained model with word features."""
    train, dev = write_demo_corpus(tmp_path / "corpus", train_size=30, dev_size=6)
    options = {"with_features": True, "thresholds": 1.0, "max_tokens": 64}
    model, output = write_small_ner(tmp_path / "model", read_examples(train), **options), tmp_path / "out.json"

    def measure(*words):
        words = [model, "--input", dev, "--output", output, "--engines", *words]
        assert main(["benchmark", "prediction", *map(str, words)]) == 0
        return json.loads(output.read_text(encoding="utf-8"))

    return measure


@pytest.mark.slow
def test_each_engine_has_a_row_with_a_time_of_each_round(measure):
    measured = measure(GRAPH, "--texts", 5, "--rounds", 2)
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


class Told:
    """A worker that finds fixed spans in the first text, ``paddle`` and int8 without the first one."""

    def __init__(self, module, folder, *_, **options):
        self.first, missing = {"processor_seconds": 1.0}, folder.endswith(("paddle", "onnx_int8"))
        self.answer = {"seconds": 1.0, "reading_seconds": 0.5, "entities": [SPANS[missing:]]}

    def ask(self, **_):
        return self.answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing to end."""


def test_an_engine_that_finds_something_else_is_left_out_unless_it_rounds(measure, monkeypatch):
    monkeypatch.setattr(prediction, "Worker", Told)
    monkeypatch.setattr(prediction, "_exported", lambda _, folder, name: (folder / name).mkdir() or folder / name)
    measured = measure("paddle", "onnx", "onnx_int8", "--rounds", 1, "--texts", 1)
    assert {row["engine"]: row["changed"] for row in measured["rows"]} == {"eager": 0, "onnx": 0, "onnx_int8": 0.25}
    assert len(measured["notes"]) == 1
    assert "Paddle Inference" in measured["notes"][0] and "25.00%" in measured["notes"][0]
