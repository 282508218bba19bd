"""The benchmark of prediction: engines in processes of their own find the same entities."""

import json

import pytest

from paddle_rope import CharTokenizer
from tasks.commands.main import main
from tasks.common.errors import InputError
from tasks.experiments.benchmarks import prediction
from tasks.experiments.benchmarks.prediction import as_table, compare, measure_engines, read_input
from tasks.ner.data.reading import read_examples
from tasks.ner.demo import write_demo_corpus
from tasks.ner.examples import Entity
from tasks.ner.features import FEATURE_KINDS, WordFeatures
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.predictor import NerPredictor
from tests.helpers.exports import FORMATS
from tests.paddle_rope.roformer.small_models import randomise

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


def test_each_engine_has_a_row_with_a_time_of_each_round(measured, demo):
    eager, graph = measured["rows"]
    assert (eager["engine"], graph["engine"]) == ("eager", GRAPH)
    assert measured["texts"] == 5 and measured["notes"] == []
    for row in measured["rows"]:
        assert len(row["turns"]) == 2 and len(row["first_answer_seconds"]) == 2
        assert all(turn["seconds"] > 0 and turn["reading_seconds"] > 0 for turn in row["turns"])
        assert min(row["first_answer_seconds"]) > 0 and row["megabytes"] > 0
    assert graph["changed"] == 0 and graph["f1"] == eager["f1"]
    texts = [example.text for example in read_examples(demo[1])][:5]
    assert any(NerPredictor(demo[0], "cpu").find(texts))  # there is something to find


def test_the_table_shows_medians():
    def row(*seconds):
        turns = [{"seconds": one, "reading_seconds": 0.5} for one in seconds]
        row = {"engine": "eager", "turns": turns, "changed": 0.01, "f1": 0.5, "megabytes": 1.5}
        return {**row, "first_answer_seconds": [4, 2, 3]}

    table = as_table({"texts": 100, "rows": [row(3, 9, 4), row(1, 9, 2)]})
    assert table.splitlines()[-1] == "| Paddle, the trained model | 50 | 2.00 | 25% | 1.00% | 0.5000 | 1.5 | 3.00 |"


def test_predictions_are_compared_span_by_span():
    first = [[Entity(0, 2, "person", 1.0), Entity(3, 4, "place", 2.0)], [Entity(0, 1, "place", 1.0)]]
    second = [[Entity(0, 2, "person", 1.5), Entity(3, 4, "person", 2.0)], []]
    assert compare(first, first) == (0, 0)
    assert compare(first, second) == (1.0, 0.5)  # three spans are of one alone
    assert compare([[]], [[]]) == (0, 0)


class Told:
    """A worker that finds in the only text what it is told to, by the folder that it opens."""

    spans = [(start, start + 1, "person", 1.0) for start in range(4)]

    def __init__(self, module, folder, *_, **options):
        self.found, self.first = self.spans[folder.endswith(("paddle", "onnx_int8")) :], {"processor_seconds": 1.0}

    def ask(self, with_entities=False):
        return {"seconds": 1.0, "processor_seconds": 1.0, "reading_seconds": 0.5, "entities": [self.found]}

    def end(self):
        """Nothing to end."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing to end."""


def test_an_engine_that_finds_something_else_is_left_out_unless_it_rounds(demo, tmp_path, monkeypatch):
    file = tmp_path / "texts.txt"
    file.write_text("去年他来过雁潭市。\n", encoding="utf-8")
    monkeypatch.setattr(prediction, "Worker", Told)
    monkeypatch.setattr(prediction, "_exported", lambda model_dir, folder, options: folder.mkdir() or folder)
    measured = measure_engines(demo[0], file, ["paddle", "onnx", "onnx_int8"], rounds=1)
    assert {row["engine"]: row["changed"] for row in measured["rows"]} == {"eager": 0, "onnx": 0, "onnx_int8": 0.25}
    assert measured["rows"][0]["f1"] is None and "texts without labels" in measured["notes"][0]
    assert "Paddle Inference is left out" in measured["notes"][1] and "25.00% of the spans" in measured["notes"][1]


def test_texts_without_labels_have_no_examples(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("去年他来过雁潭市。\n我买了一台电脑。\n好\n", encoding="utf-8")
    assert read_input(file, 2, []) == (None, ["去年他来过雁潭市。", "我买了一台电脑。"])


def test_a_trained_model_that_cannot_be_opened_is_an_error(demo, tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        measure_engines(tmp_path / "nothing", demo[1], ["onnx"])


@pytest.mark.parametrize("option", ["rounds", "texts", "batch_size", "threads"])
def test_numbers_below_one_are_refused(option, demo, capsys):
    assert main(["benchmark", "prediction", str(demo[0]), "--input", str(demo[1]), f"--{option}", "0"]) == 2
    assert f"--{option}: expected a whole number, 1 or more, got 0" in capsys.readouterr().err
