"""Vectors, triples, and edges of prediction; what predictors of all recipes promise: tests/tasks/test_predictors.py."""

import json
from itertools import chain

import numpy as np
import pytest

from tasks.commands.main import main
from tasks.matching.data import LABELED, ExampleStream
from tasks.matching.prediction import MatchingPredictor


def call(*words):
    assert main([*map(str, words), "--device", "cpu"]) == 0


@pytest.fixture(scope="module")
def predictors(bi_encoder, cross_encoder):
    return {name: MatchingPredictor(run.model, "cpu") for name, run in (("bi", bi_encoder), ("cross", cross_encoder))}


@pytest.fixture(scope="module")
def pairs(data):
    return [texts for texts, _ in chain.from_iterable(ExampleStream(data.pairs_dev))]


def test_dot_products_of_vectors_are_the_scores_and_find_the_question_that_means_the_same(predictors, pairs, data):
    encode = predictors["bi"].encode
    vectors = encode(list(chain.from_iterable(pairs)))
    assert vectors.dtype == np.float32 and vectors.shape == (2 * len(pairs), 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose((vectors[::2] * vectors[1::2]).sum(axis=1), predictors["bi"].score(pairs), atol=1e-5)
    matching = [example.texts for example in LABELED.read_file(data.pairs_dev) if example.label == 1][:10]
    queries, answers = (encode([texts[side] for texts in matching]) for side in (0, 1))
    assert (np.argmax(queries @ answers.T, axis=1) == np.arange(10)).mean() > 0.5


def test_triples_are_scored_by_a_model_of_pairs(predictors, data):
    triples = [texts for texts, _ in chain.from_iterable(ExampleStream(data.triples))][:5]
    for name in ("bi", "cross"):
        scores = predictors[name].score_triples(triples)
        np.testing.assert_allclose(scores[:, 1], predictors[name].score([(a, c) for a, _, c in triples]), atol=1e-5)


def test_nothing_has_no_scores_an_empty_text_has_a_vector_and_long_texts_are_cut(predictors, bi_encoder):
    predictor = predictors["bi"]
    assert [predictor.score([]).shape, predictor.score_triples([]).shape] == [(0,), (0, 2)]
    assert predictor.score([("a", "b")]).dtype == np.float32
    assert predictor.encode([]).shape == (0, 32)
    assert np.isfinite(predictor.encode(["", " ", "𠮷" * 100])).all()
    text, short = "怎么申请信用卡和储蓄卡", MatchingPredictor(bi_encoder.model, "cpu", max_tokens=7)
    np.testing.assert_allclose(short.encode([text]), short.encode([text[:5]]), atol=1e-6)
    assert np.abs(predictor.encode([text]) - predictor.encode([text[:5]])).max() > 1e-3


def test_vectors_of_lines_are_written_as_an_array(bi_encoder, predictors, tmp_path):
    (tmp_path / "texts").write_text("怎么申请信用卡\n\n房贷利息\n", encoding="utf-8")
    words = ["--embed", "--input", tmp_path / "texts", "--output", tmp_path / "vectors.npy"]
    call("predict", bi_encoder.model, *words)
    expected = predictors["bi"].encode(["怎么申请信用卡", "", "房贷利息"])
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), expected, atol=1e-6)


def test_a_model_of_pairs_may_be_used_for_grades(bi_encoder, data, tmp_path):
    call("evaluate", bi_encoder.model, data.grades_dev, "--output", tmp_path / "out")
    assert json.loads((tmp_path / "out").read_text("utf-8")).keys() == {"spearman"}
