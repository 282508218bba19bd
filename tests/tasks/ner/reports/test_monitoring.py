"""What VisualDL shows of a run: read back from its log, and looked at by what changes in a picture."""

import io
import warnings
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from paddle_rope import CharTokenizer
from paddle_rope.tasks.common.training import monitor
from paddle_rope.tasks.ner import monitoring
from paddle_rope.tasks.ner.batching import NerDataset
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import Example
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from paddle_rope.tasks.ner.monitoring import CURVE_STEPS, draw_scores, span_scores
from paddle_rope.tasks.ner.prediction.finding import predict_entities
from tests.helpers.models import SIZES
from tests.helpers.runs import log_of
from tests.tasks.conftest import SHOW

STEPS = 6  # of an epoch of few texts


@pytest.fixture(scope="module", autouse=True)
def without_pictures():
    """Pictures are drawn here."""


@pytest.fixture(scope="module")
def pictured(train, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitoring, "show", SHOW)
        patch.setattr(monitor, "PICTURE_SHARE", 1.0)
        return train(tmp_path_factory.mktemp("drawn") / "run", num_train_epochs=6)


@pytest.fixture(scope="module")
def log(pictured):
    return log_of(pictured.folder / "vdl")


def of_steps(log, kind, tag):
    return {record.id: getattr(record, "value" if kind == "scalar" else kind) for record in log.get_data(kind, tag)}


def best_steps(log):
    """The steps whose F1 was the best so far: those that are shown, when there is time."""
    f1 = of_steps(log, "scalar", "dev/f1")
    return [step for step, value in f1.items() if value > max((f1[one] for one in f1 if one < step), default=-1)]


def test_each_type_has_a_curve_once_spans_are_told_apart_that_agrees_with_its_scores(log, pictured, corpus):
    types = pictured.model_config["types"]
    assert set(log.get_tags()["pr_curve"]) == {f"dev/{kind}" for kind in types}
    half, support = CURVE_STEPS // 2 - 1, Counter(e.type for one in read_examples(corpus.dev) for e in one.entities)
    for kind in types:
        curves = of_steps(log, "pr_curve", f"dev/{kind}")
        precision, recall = (of_steps(log, "scalar", f"dev_{name}_by_type/{kind}") for name in ("precision", "recall"))
        assert list(curves) == best_steps(log)[-len(curves) :] and len(curves) > 2
        for step, curve in curves.items():
            assert curve.precision[half] == pytest.approx(precision[step], abs=1e-6) or not curve.TP[half]
            assert curve.recall[half] == pytest.approx(recall[step], abs=1e-6)
            assert len(curve.precision) == CURVE_STEPS and sorted(curve.recall, reverse=True) == list(curve.recall)
            np.testing.assert_allclose(np.add(curve.TP, curve.FN), support[kind])


def test_texts_show_gold_and_predictions_at_each_best_evaluation(log, corpus):
    examples = {example.text: example for example in read_examples(corpus.dev)}
    tags = sorted(tag for tag in log.get_tags()["text"] if tag.startswith("dev/"))
    assert tags == [f"dev/text_{number}" for number in range(1, 9)]
    for tag in tags:
        texts = [text.encoded_text_string for text in of_steps(log, "text", tag).values()]
        assert list(of_steps(log, "text", tag)) == best_steps(log)
        (first,) = {text.split("\n")[0] for text in texts}
        for entity in examples[first].entities:
            assert texts[-1].count(f"gold {examples[first].described(entity)}") == 1
    assert any("\n• correct: gold" in text.encoded_text_string for text in of_steps(log, "text", tags[0]).values())


def test_scores_and_reliability_are_pictures_of_each_best_evaluation(log, pictured):
    names = ("scores", "reliability")
    assert set(log.get_tags()["image"]) == {f"{group}/{name}" for group in ("dev", "dev_history") for name in names}
    for name in names:
        history, kept = (of_steps(log, "image", f"{group}/{name}") for group in ("dev_history", "dev"))
        assert len(history) > 2 and list(kept) == best_steps(log)[-1:]
        first, last = (
            np.asarray(Image.open(io.BytesIO(image.encoded_image_string))).astype(int)
            for image in (*list(history.values())[:1], *kept.values())
        )
        assert min(first.shape[:2]) > 200 and first.shape == last.shape
        assert (first != last).any(axis=2).mean() > 0.01
    assert np.asarray(Image.open(pictured.folder / "epochs.png").convert("L")).std() > 1


@pytest.mark.parametrize("spent, elapsed, is_shown", [(0.0, 0.0, True), (1.0, 9.0, False), (1.0, 11.0, True)])
def test_what_is_shown_takes_a_tenth_of_the_time_at_most(monkeypatch, spent, elapsed, is_shown):
    clock = iter([0.0, elapsed, elapsed + 1])
    monkeypatch.setattr(monitor, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    shown = monitor.VisualDLMonitor("nowhere")
    shown.writer, shown._showing = object(), spent
    with shown.showing() as has_time:
        assert has_time == is_shown
    assert shown._showing == spent + 1


@pytest.mark.slow
def test_there_are_no_histograms_unless_asked_for(log, train_few, tmp_path):
    assert "histogram" not in log.get_tags()
    run = train_few(tmp_path / "run", num_train_epochs=2, log_histograms="true")
    log, name = log_of(run.folder / "vdl"), "roformer.token_embedding.weight"
    assert {f"weights/{name}", f"gradients/{name}", "weights/head.dense.weight"} <= set(log.get_tags()["histogram"])
    weights = of_steps(log, "histogram", f"weights/{name}")
    assert list(weights) == [STEPS, 2 * STEPS]
    assert list(of_steps(log, "histogram", f"gradients/{name}")) == [1, STEPS + 1]
    assert sum(weights[STEPS].hist) == pytest.approx(run.model_config["vocab_size"] * 32)


# ---- without training
@pytest.mark.parametrize("max_span_length", [None, 2])
def test_scores_of_a_text_are_those_of_prediction(max_span_length):
    tokenizer, types = CharTokenizer.from_corpus(["甲乙丙丁戊"]), ["a", "b"]
    model = NerModel(NerConfig(types=types, max_span_length=max_span_length, vocab_size=len(tokenizer), **SIZES))
    (text,) = NerDataset([Example("甲乙e\u0301丁", (), "f:1")], tokenizer, types, 9).texts
    (spans,) = predict_entities(model, [text], 1, thresholds=-1e3)
    for characters in (5, 3):
        expected = np.full([2, characters, characters], np.nan)
        for start, end, kind, score, _ in spans:
            if end <= characters:
                expected["ab".index(kind), start, end - 1] = score
        np.testing.assert_array_equal(span_scores(model, text, characters), expected.astype(np.float32))
    assert model.training


def test_four_types_have_panels_those_of_gold_and_then_of_high_scores():
    scores = dict(zip("abcdef", np.arange(-6.0, 0.0)[:, None, None] * np.ones([2, 2])))
    gold = {(0, 1, "b")}  # is drawn before the types with the highest scores
    of_many, of_shown, of_three = (
        draw_scores("甲乙", [scores[kind] for kind in types], gold, list(types), "title").tobytes()
        for types in (scores, "bdef", "bef")
    )
    assert of_many == of_shown != of_three


@pytest.mark.parametrize("text", ["$%^$$\\frac{${}_^\\", "a\nb\x00👨\u200d👩\u202e", "甲乙"])
def test_scores_gold_and_text_are_drawn_whatever_the_text(text):
    def draw(score=-20.0, gold=(), shown=text):
        return draw_scores(shown, np.full([1, len(text), len(text)], score), set(gold), [text], text).astype(int)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, high, framed = draw(), draw(5.0), draw(gold=[(0, 1, text)])
    assert (plain != high).any() and (plain != framed).any()
    assert high[..., 0].sum() > plain[..., 0].sum()  # scores above zero are red
    if text == "甲乙":  # each character is drawn in its own way
        assert (plain != draw(shown="甲丙")).any()
