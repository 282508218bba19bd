"""Prediction in Python: with one model, with several, in threads, from damaged folders."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.common.inference import evaluated
from tasks.ner import NerPredictor
from tasks.ner.batching import SpanCollator
from tests.helpers.models import FORMATS, export
from tests.tasks.ner.conftest import spans_of

KEYS = ["start", "end", "type", "text", "score", "probability"]


def scores_of(records):
    return [entity["score"] for record in records for entity in record["entities"]]


def test_records_have_the_promised_form_whatever_the_texts(predictor, dev_texts):
    texts = [*dev_texts, "", " \t", "".join(dev_texts), "\U0001f44d\U0001f3fb \u3000e\u0301 " + dev_texts[0]]
    assert len(texts[-2]) > 10 * predictor.max_tokens
    records = predictor(texts)
    assert [record["text"] for record in records] == texts and predictor([]) == []
    assert [len(record["entities"]) > 0 for record in records[-4:]] == [False, False, True, True]
    for record in records:
        for entity in record["entities"]:
            assert list(entity) == KEYS and entity["type"] in predictor.types and entity["score"] > 0
            assert record["text"][entity["start"] : entity["end"]] == entity["text"] != ""
    for spans in spans_of(records):
        assert spans == sorted(set(spans))
    assert records[-2]["entities"][-1]["start"] > len(texts[-2]) - 2 * predictor.max_tokens


def test_python_the_verbs_and_the_training_run_agree(predictor, predict, evaluate, dev_texts, trained, corpus):
    records = predictor(dev_texts)
    assert predict("".join(f"{text}\n" for text in dev_texts)) == records
    assert spans_of(trained.predictions) == spans_of(records) and len(scores_of(records)) > 20
    assert scores_of(trained.predictions) == pytest.approx(scores_of(records), abs=2e-4)
    scores = evaluate(corpus.dev)
    assert len(scores.pop("worst_examples")) == 5 and scores == trained.metrics["dev"]


def test_the_batch_the_order_and_the_window_change_nothing(predictor, trained, dev_texts):
    texts = ["", "我", dev_texts[0], "".join(dev_texts), dev_texts[1][:3], "".join(dev_texts[:9]), " \t", *dev_texts]
    random.Random(1).shuffle(texts)
    large = NerPredictor(trained.model, "cpu", batch_size=len(texts), max_tokens=5000)
    together, alone = large(texts), [large([text])[0] for text in texts]
    assert spans_of(together) == spans_of(alone)
    # 1e-4, and as much again by rounding to 4 digits
    assert scores_of(together) == pytest.approx(scores_of(alone), abs=2e-4)
    text = "".join(dev_texts)[: predictor.max_tokens]  # is read whole
    assert predictor([text]) == large([text]) != [{"text": text, "entities": []}]


def test_thresholds_of_the_configuration_decide(predictor, copy_with, dev_texts):
    thresholds = [-1.0, 3.0, 0.0, 1e9, 0.5, 2.0]
    bound = dict(zip(predictor.types, thresholds))
    candidates = predictor.find(dev_texts, thresholds=-1.0)
    expected = [[entity for entity in entities if entity.score > bound[entity.type]] for entities in candidates]
    assert NerPredictor(copy_with(thresholds=thresholds), "cpu").find(dev_texts) == expected != candidates


@pytest.mark.parametrize("options, texts, place", [
    ({}, "一个字符串", r"\[text\]"),
    ({}, ["a", 1], "text 2"),
    ({"batch_size": 0}, [], "batch_size"),
    ({"max_tokens": 0}, [], "max_tokens"),
    ({"max_entity_tokens": -1}, [], "max_entity_tokens"),
    ({"max_tokens": 64, "overlap": -1}, [], "overlap"),
    ({"max_tokens": 64, "overlap": 63}, [], "overlap.* 62"),
    ({"model_dir": []}, [], "no folder"),
])  # fmt: skip
def test_wrong_texts_and_sizes_are_refused(trained, options, texts, place):
    with pytest.raises(InputError, match=place):
        NerPredictor(**{"model_dir": trained.model, "device": "cpu", **options})(texts)


# ---- several models


def logits_of(predictor, texts):
    """Logits of all texts, one after the other."""
    collate = SpanCollator(predictor.tokenizer.pad_token_id, with_labels=False)
    batch = collate([predictor.tokenize(text) for text in texts])
    return evaluated(predictor.model, batch).numpy().astype("float64").ravel()


def test_scores_of_several_models_are_averaged(predictor, trained, train_few, tmp_path, corpus, evaluate, dev_texts):
    train_file = corpus.train  # which gives the same vocabulary
    options = {"seed": 43, "attention": "linear", "intermediate_size": 32, "num_train_epochs": 1}
    other = train_few(tmp_path / "other", train_file=train_file, **options)
    both = NerPredictor([trained.model, other.model], "cpu")
    predictors = (predictor, NerPredictor(other.model, "cpu"), both)
    first, second, mean = (logits_of(one, dev_texts[:4]) for one in predictors)
    is_span = first > -1e3  # others are masked
    assert is_span.sum() > 1000 and np.abs(first - second)[is_span].max() > 1
    np.testing.assert_allclose(mean[is_span], ((first + second) / 2)[is_span], atol=1e-5)
    assert evaluate(corpus.dev, trained.model, other.model)["predicted"] == len(scores_of(both(dev_texts)))


def test_several_models_take_mean_thresholds_and_the_least_lengths(predictor, trained, copy_with, dev_texts):
    assert NerPredictor([trained.model] * 2, "cpu")(dev_texts) == predictor(dev_texts)
    lengths = {"max_tokens": 20, "window_tokens": 18, "longest_entity": 50, "longest_text": None}
    both = NerPredictor([trained.model, copy_with(thresholds=[1.0] * 6, **lengths)], "cpu")
    assert both.model.config.thresholds == [0.5] * 6
    assert (both.model.config.max_tokens, both.longest_text) == (20, trained.model_config["longest_text"])
    assert both.reading == (18, 9, 100)


@pytest.mark.parametrize("key, value", [("types", list("abcdef")), ("allow_overlap", False), ("vocab.txt", None)])
def test_models_that_read_or_find_otherwise_are_refused(trained, copy_with, key, value):
    folder = copy_with(**{key: value} if value is not None else {})
    if value is None:
        lines = (folder / key).read_text(encoding="utf-8").splitlines()
        (folder / key).write_text("\n".join([*lines[:-2], lines[-1], lines[-2]]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"model: its {key} differs from"):
        NerPredictor([trained.model, folder], "cpu")


# ---- threads

THREADS, ROUNDS = 8, 4


@pytest.mark.parametrize("kind", ["trained", *FORMATS, "ensemble"])
def test_threads_that_share_a_predictor_get_what_one_caller_gets(kind, trained, dev_texts, tmp_path):
    model = export(tmp_path / "model", kind, trained.model) if kind in FORMATS else trained.model
    predictor = NerPredictor([model] * (2 if kind == "ensemble" else 1), "cpu")
    parts = [dev_texts[start::THREADS] for start in range(THREADS)] * ROUNDS
    alone = [predictor(part) for part in parts]
    assert any(record["entities"] for of_part in alone for record in of_part)
    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(predictor, parts)) == alone
    layers = [predictor.model, *getattr(predictor.model, "sublayers", list)()]
    assert not any(getattr(layer, "training", False) for layer in layers)
