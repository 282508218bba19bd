"""Threads that share a matching predictor get what one caller gets."""

from itertools import chain

import pytest

from tasks.matching.data import ExampleStream
from tasks.matching.prediction import MatchingPredictor
from tests.helpers.exports import FORMATS, export
from tests.helpers.threads import assert_threads_get_what_one_caller_gets

FORMS = ("trained", *FORMATS)


@pytest.fixture(scope="module")
def pairs(data):
    return [example.texts for example in chain.from_iterable(ExampleStream(data.pairs_dev))]


@pytest.fixture(scope="module")
def predictor_of(tmp_path_factory):
    """``predictor_of(run, form)``: a predictor of the trained model of a run, or of its export."""

    def predictor_of(run, form):
        folder = run.model
        if form != "trained":
            folder = export(tmp_path_factory.mktemp("exported") / "model", form, run.model)
        return MatchingPredictor(folder, "cpu", batch_size=4)

    return predictor_of


@pytest.mark.parametrize("form", FORMS)
def test_scores_and_vectors_of_a_bi_encoder(bi_encoder, predictor_of, pairs, form):
    predictor = predictor_of(bi_encoder, form)
    assert_threads_get_what_one_caller_gets(predictor.score, pairs)
    assert_threads_get_what_one_caller_gets(predictor.encode, [text for pair in pairs for text in pair])
    assert not getattr(predictor.model, "training", False)


@pytest.mark.parametrize("form", FORMS)
def test_scores_of_a_cross_encoder(cross_encoder, predictor_of, pairs, form):
    predictor = predictor_of(cross_encoder, form)
    assert_threads_get_what_one_caller_gets(predictor.score, pairs)
    assert not getattr(predictor.model, "training", False)
