"""Threads that share a predictor get what one caller gets."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tasks.ner import NerPredictor
from tasks.ner.data.reading import read_texts
from tests.helpers.exports import FORMATS, export

THREADS, ROUNDS = 8, 4


@pytest.fixture(scope="module", params=["trained", *FORMATS, "ensemble"])
def predictor(request, trained, tmp_path_factory):
    if request.param in FORMATS:
        return NerPredictor(export(tmp_path_factory.mktemp("exported") / "model", request.param, trained.model), "cpu")
    return NerPredictor([trained.model] * (2 if request.param == "ensemble" else 1), "cpu")


def test_threads_get_the_results_of_one_caller(predictor, corpus):
    texts = [text for text, _ in read_texts(corpus.dev)]
    parts = [texts[start::THREADS] for start in range(THREADS)] * ROUNDS
    alone = [predictor(part) for part in parts]
    assert any(record["entities"] for of_part in alone for record in of_part)
    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(predictor, parts)) == alone


def test_a_predictor_is_never_in_training(predictor, corpus):
    predictor([text for text, _ in read_texts(corpus.dev)])
    assert not getattr(predictor.model, "training", False)
    assert not any(layer.training for layer in getattr(predictor.model, "sublayers", list)())
