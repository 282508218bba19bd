"""What VisualDL shows of a run: read back from its log."""

import io
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from PIL import Image
from visualdl import LogReader

from paddle_rope import CharTokenizer
from tasks.ner import evaluation
from tasks.ner.batching import NerDataset
from tasks.ner.data.reading import Entity, Example, read_examples
from tasks.ner.evaluation import Evaluation, evaluate_model
from tasks.ner.metrics import precision_recall_curves
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.finding import predict_entities
from tasks.ner.prediction.predictor import NerPredictor
from tasks.ner.prediction.thresholds import LOWEST_THRESHOLD
from tasks.ner.reports.monitoring import CURVE_STEPS, MOST_TYPES, NerMonitor, span_scores

ARGS = SimpleNamespace(logging_steps=2)


def log_of(folder):
    (path,) = folder.glob("*.log")
    return LogReader(file_path=str(path))


@pytest.fixture(scope="module")
def log(pictured):
    return log_of(pictured.folder / "vdl")


@pytest.fixture(scope="module")
def types(pictured):
    return pictured.model_config["types"]


def curves(log, tag):
    return {record.id: record.pr_curve for record in log.get_data("pr_curve", tag)}


def test_each_type_has_a_curve_at_each_evaluation(log, pictured, types):
    assert set(log.get_tags()["pr_curve"]) == {f"dev/{kind}" for kind in types}
    steps = [19 * epoch for epoch in range(1, int(pictured.config["num_train_epochs"]) + 1)]
    assert all(list(curves(log, f"dev/{kind}")) == steps for kind in types)


def test_a_curve_at_one_half_is_the_score_of_that_evaluation(log, pictured, types):
    for kind in types:
        scores = {
            name: {record.id: record.value for record in log.get_data("scalar", f"dev_{name}_by_type/{kind}")}
            for name in ("precision", "recall")
        }
        for step, curve in curves(log, f"dev/{kind}").items():
            half = CURVE_STEPS // 2 - 1
            counted = curve.TP[half] + curve.FP[half]
            assert curve.precision[half] == pytest.approx(scores["precision"][step], abs=1e-6) or not counted
            assert curve.recall[half] == pytest.approx(scores["recall"][step], abs=1e-6)
            assert len(curve.precision) == CURVE_STEPS
            assert sorted(curve.recall, reverse=True) == list(curve.recall)


def test_curves_are_those_of_all_spans_of_the_saved_model(log, pictured, corpus, types):
    examples = read_examples(corpus.dev)
    found = NerPredictor(pictured.model, "cpu").find(
        [example.text for example in examples], thresholds=LOWEST_THRESHOLD
    )
    gold = [example.entities for example in examples]
    expected_curves = precision_recall_curves(gold, found, types, CURVE_STEPS)
    f1 = [record.value for record in log.get_data("scalar", "dev/f1")]
    best = 19 * (f1.index(max(f1)) + 1)
    for kind in types:
        shown, expected = curves(log, f"dev/{kind}")[best], expected_curves[kind]
        # scores of batches of other lengths differ in the last digits
        np.testing.assert_allclose(shown.TP, expected["tp"], atol=1)
        np.testing.assert_allclose(np.add(shown.TP, shown.FN), len([e for g in gold for e in g if e.type == kind]))


def test_texts_show_gold_and_predictions_of_the_same_examples_at_each_evaluation(log, pictured, corpus):
    tags = sorted(tag for tag in log.get_tags()["text"] if tag.startswith("dev/"))
    assert tags == [f"dev/text_{number}" for number in range(1, 9)]
    for tag in tags:
        texts = [record.text.encoded_text_string for record in log.get_data("text", tag)]
        assert len(texts) == pictured.config["num_train_epochs"]
        (first,) = {text.split("\n")[0] for text in texts}
        (record,) = [record for record in corpus.dev_records if record["text"] == first]
        lines = texts[-1].split("\n")[1:]
        for kind, surfaces in record["label"].items():
            for surface, pairs in surfaces.items():
                for start, last in pairs:
                    assert sum(f"gold {kind} {surface} [{start}, {last + 1})" in line for line in lines) == 1
    assert any("\n• correct: gold" in record.text.encoded_text_string for record in log.get_data("text", tags[0]))


def pictures(log, tag):
    records = log.get_data("image", tag)
    return [np.asarray(Image.open(io.BytesIO(record.image.encoded_image_string))).astype(int) for record in records]


def test_scores_of_one_text_are_a_picture_at_each_evaluation(log, pictured):
    drawn = pictures(log, "dev_history/scores")
    assert len(drawn) == pictured.config["num_train_epochs"]
    assert {picture.shape for picture in drawn} == {drawn[0].shape}
    assert min(drawn[0].shape[:2]) > 200 and (drawn[0] != drawn[-1]).any(axis=2).mean() > 0.01


def test_the_epochs_of_the_run_are_drawn(pictured):
    assert np.asarray(Image.open(pictured.folder / "epochs.png").convert("L")).std() > 1


def test_the_newest_pictures_are_also_alone(log):
    names = ("scores", "reliability")
    assert set(log.get_tags()["image"]) == {f"{group}/{name}" for group in ("dev", "dev_history") for name in names}
    for name in names:
        (newest,) = log.get_data("image", f"dev/{name}")
        last = log.get_data("image", f"dev_history/{name}")[-1]
        assert newest.id == last.id and newest.image == last.image


def test_there_are_no_histograms_unless_asked_for(log, train, tmp_path):
    assert "histogram" not in log.get_tags()
    run = train(tmp_path / "run", num_train_epochs=2, log_histograms="true")
    assert run.config["log_histograms"] is True
    log = log_of(run.folder / "vdl")
    tags = log.get_tags()["histogram"]
    name = "roformer.token_embedding.weight"
    assert {f"weights/{name}", f"gradients/{name}", "weights/head.dense.weight"} <= set(tags)
    weights = log.get_data("histogram", f"weights/{name}")
    assert [record.id for record in weights] == [19, 38]
    assert [record.id for record in log.get_data("histogram", f"gradients/{name}")] == [1, 20]
    assert sum(weights[0].histogram.hist) == pytest.approx(run.model_config["vocab_size"] * 32)


# ---- without training


def small_model(types, max_span_length=None):
    tokenizer = CharTokenizer.from_corpus(["甲乙丙丁戊"])
    config = NerConfig(
        types=types, max_span_length=max_span_length, vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1,
        num_attention_heads=1, intermediate_size=8, head_size=4,
    )  # fmt: skip
    return NerModel(config), tokenizer


@pytest.mark.parametrize("max_span_length", [None, 2])
def test_scores_of_a_text_are_those_of_prediction(max_span_length):
    model, tokenizer = small_model(["a", "b"], max_span_length)
    (text,) = NerDataset([Example("甲乙e\u0301丁", (), "f:1")], tokenizer, ["a", "b"], 9).texts
    (spans,) = predict_entities(model, [text], 1, thresholds=-1e3)
    for characters in (5, 3):
        expected = np.full([2, characters, characters], np.nan)
        for start, end, kind, score, _ in spans:
            if end <= characters:
                expected["ab".index(kind), start, end - 1] = score
        np.testing.assert_array_equal(span_scores(model, text, characters), expected.astype(np.float32))
    assert model.training


def test_of_a_thousand_types_the_most_frequent_are_shown(tmp_path):
    types = [f"type {number:03}" for number in range(1000)]
    model, tokenizer = small_model(types)
    model.head.type_scores.bias.set_value(paddle.full([2000], -20.0))  # nearly no span is one
    examples = [
        Example("甲乙丙", tuple(Entity(0, 1 + n % 3, types[n]) for n in range(900, 970)), "f:1"),
        Example("丁", (Entity(0, 1, types[969]), Entity(0, 1, types[3])), "f:2"),
        Example("丁戊", (Entity(0, 1, types[3]),), "f:3"),
    ]
    dataset = NerDataset(examples, tokenizer, types, 9)
    state = SimpleNamespace(is_world_process_zero=True, global_step=5)
    monitor = NerMonitor(tmp_path, {}, ["f1"])
    monitor.on_train_begin(ARGS, state, None)
    found = [[Entity(0, 1, types[969], 2.0)], [], []]
    monitor.show(model, dataset, Evaluation({}, found, found), 5)
    metrics = {"eval_f1": 0.5, **{f"eval_f1_by_type/{kind}": 0.25 for kind in types}}
    monitor.on_evaluate(ARGS, state, None, metrics=metrics)
    monitor.on_train_end(ARGS, state, None)
    log = log_of(tmp_path)
    shown = {tag.removeprefix("dev/") for tag in log.get_tags()["pr_curve"]}
    assert len(shown) == MOST_TYPES and {types[969], types[3]} <= shown
    assert {tag.removeprefix("dev_f1_by_type/") for tag in log.get_tags()["scalar"]} == shown | {"dev/f1"}
    assert curves(log, f"dev/{types[969]}")[5].TP[49] == 1


def test_candidates_are_collected_unless_too_many_are_expected(monkeypatch):
    monkeypatch.setattr(evaluation, "MOST_CANDIDATES", 11)  # an untrained model has 6 in a text of 3 characters
    model, tokenizer = small_model(["a"])
    example = Example("甲乙丙", (Entity(0, 1, "a"),), "f:1")
    one, two = (NerDataset([example] * count, tokenizer, ["a"], 9) for count in (1, 2))
    assert [len(of_text) for of_text in evaluate_model(model, one, 1, with_candidates=True).candidates] == [6]
    assert evaluate_model(model, one, 1).candidates is None
    few, many = (evaluate_model(model, dataset, 1, with_candidates=True) for dataset in (one, two))
    assert many.candidates is None and many.found == few.found * 2


def test_without_candidates_there_are_no_curves(tmp_path):
    model, tokenizer = small_model(["a"])
    dataset = NerDataset([Example("甲乙丙", (Entity(0, 1, "a"),), "f:1")], tokenizer, ["a"], 9)
    monitor = NerMonitor(tmp_path, {}, ["f1"])
    monitor.on_train_begin(ARGS, SimpleNamespace(is_world_process_zero=True), None)
    monitor.show(model, dataset, Evaluation({}, [[]], None), 0)
    monitor.on_train_end(ARGS, None, None)
    assert {"text", "image"} <= set(log_of(tmp_path).get_tags()) and "pr_curve" not in log_of(tmp_path).get_tags()


def test_only_the_first_process_shows_anything(tmp_path):
    monitor = NerMonitor(tmp_path / "log", {}, ["f1"])
    monitor.on_train_begin(ARGS, SimpleNamespace(is_world_process_zero=False), None)
    assert not monitor.is_open
    monitor.show(None, None, None, 0)
    assert not (tmp_path / "log").exists()
