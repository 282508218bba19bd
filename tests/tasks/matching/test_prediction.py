"""Predictors and the verbs around them: scores, vectors, and what is refused."""

import json
from itertools import chain

import numpy as np
import pytest

from tasks.commands.main import main
from tasks.commands.predict import CHUNK_BATCHES
from tasks.common.errors import InputError
from tasks.matching.data import LABELED, ExampleStream
from tasks.matching.prediction import MatchingPredictor
from tests.helpers.models import assert_threads_get_what_one_caller_gets
from tests.helpers.runs import read_json_lines


def call(*words):
    assert main([*map(str, words), "--device", "cpu"]) == 0


@pytest.fixture(scope="module")
def models(bi_encoder, cross_encoder, of_triples):
    return {"bi": bi_encoder, "cross": cross_encoder, "triples": of_triples}


@pytest.fixture(scope="module")
def predictors(models):
    return {name: MatchingPredictor(run.model, "cpu") for name, run in models.items()}


@pytest.fixture(scope="module")
def pairs(data):
    return [texts for texts, _ in chain.from_iterable(ExampleStream(data.pairs_dev))]


@pytest.mark.parametrize("name", ["bi", "cross"])
def test_scores_are_those_of_training_in_any_batches_and_threads(models, predictors, pairs, name):
    scores = predictors[name].score(pairs)
    assert scores.dtype == np.float32 and scores.shape == (len(pairs),)
    np.testing.assert_allclose(scores, [record["score"] for record in models[name].predictions], atol=1e-5)
    one_by_one = MatchingPredictor(models[name].model, "cpu", batch_size=1)
    np.testing.assert_allclose(one_by_one.score(pairs), scores, atol=1e-5)
    assert_threads_get_what_one_caller_gets(predictors[name].score, pairs)
    assert not predictors[name].model.training


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
    assert predictor.encode([]).shape == (0, 32)
    assert np.isfinite(predictor.encode(["", " ", "𠮷" * 100])).all()
    text, short = "怎么申请信用卡和储蓄卡", MatchingPredictor(bi_encoder.model, "cpu", max_tokens=7)
    np.testing.assert_allclose(short.encode([text]), short.encode([text[:5]]), atol=1e-6)
    assert np.abs(predictor.encode([text]) - predictor.encode([text[:5]])).max() > 1e-3


@pytest.mark.parametrize("method, items, said", [
    ("score", "xy", "got one string"), ("score", ["xy"], "number 1"), ("score", [("x", 3)], "number 1"),
    ("score", [("x", "y"), ("x", "y", "z")], "pairs of strings; number 2"),
    ("score_triples", [("x", "y")], "triples of strings; number 1"),
    ("encode", "x", "got one string"), ("encode", [None], "number 1"),
])  # fmt: skip
def test_other_things_than_texts_are_refused(predictors, method, items, said):
    with pytest.raises(InputError, match=said):
        getattr(predictors["bi"], method)(items)
    with pytest.raises(InputError, match="is a cross_encoder"):
        predictors["cross"].encode(["x"])


# ---- verbs


@pytest.mark.parametrize("batch_size", [1, 32])
def test_pairs_are_written_with_their_score_and_label(bi_encoder, pairs, data, tmp_path, batch_size):
    assert len(pairs) > CHUNK_BATCHES
    words = ["--input", data.pairs_dev, "--output", tmp_path / "out", "--batch_size", batch_size]
    call("predict", bi_encoder.model, *words)
    records = read_json_lines(tmp_path / "out")
    assert [(record["sentence1"], record["sentence2"]) for record in records] == pairs
    scores = [record["score"] for record in bi_encoder.predictions]
    np.testing.assert_allclose([record["score"] for record in records], scores, atol=1e-5)
    correct = [record["label"] == example.label for record, example in zip(records, LABELED.read_file(data.pairs_dev))]
    assert np.mean(correct) == bi_encoder.metrics["dev"]["accuracy"]


def test_of_triples_the_candidate_that_is_closer_is_written(of_triples, data, tmp_path):
    call("predict", of_triples.model, "--input", data.triples, "--output", tmp_path / "out")
    records = read_json_lines(tmp_path / "out")
    assert [{key: record[key] for key in "ABC"} for record in records] == read_json_lines(data.triples)
    assert all("CB"[record["scores"][0] > record["scores"][1]] == record["label"] for record in records)
    share = np.mean([record["label"] == "B" for record in records])  # B is the closer one in the file
    assert share == of_triples.metrics["dev"]["accuracy"]


def test_vectors_of_lines_are_written_as_an_array(bi_encoder, predictors, tmp_path):
    (tmp_path / "texts").write_text("怎么申请信用卡\n\n房贷利息\n", encoding="utf-8")
    words = ["--embed", "--input", tmp_path / "texts", "--output", tmp_path / "vectors.npy"]
    call("predict", bi_encoder.model, *words)
    expected = predictors["bi"].encode(["怎么申请信用卡", "", "房贷利息"])
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), expected, atol=1e-6)


def test_evaluation_gives_the_scores_of_training(models, data, tmp_path):
    def scores(model, file):
        call("evaluate", model, file, "--output", tmp_path / "out")
        return json.loads((tmp_path / "out").read_text("utf-8"))

    for name, run in models.items():
        found = scores(run.model, data.triples if name == "triples" else data.pairs_dev)
        assert found == pytest.approx(run.metrics["dev"], abs=1e-5)
    assert scores(models["bi"].model, data.grades_dev).keys() == {"spearman"}  # a model of pairs may be used for grades
