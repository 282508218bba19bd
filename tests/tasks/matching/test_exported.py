"""Exported models of text matching: the same scores and vectors from a graph."""

import numpy as np
import pytest

from tasks.matching.prediction import MatchingPredictor
from tasks.recipes import open_predictor
from tests.helpers.exports import FORMATS, export

PAIRS = [("花呗可以分期吗", "花呗如何分期还款"), ("我的银行卡丢了" * 9, "好"), ("好", "好")]


@pytest.mark.parametrize("format", FORMATS)
def test_a_bi_encoder_gives_the_same_scores_and_vectors(bi_encoder, tmp_path, format):
    folder = export(tmp_path / "exported", format, bi_encoder.model)
    trained, exported = MatchingPredictor(bi_encoder.model, "cpu"), open_predictor(folder)
    assert exported.recipe == "matching" and exported.threshold == trained.threshold
    np.testing.assert_allclose(exported.score(PAIRS), trained.score(PAIRS), atol=1e-5)
    texts = [text for pair in PAIRS for text in pair]
    np.testing.assert_allclose(exported.encode(texts), trained.encode(texts), atol=1e-5)


@pytest.mark.parametrize("format", FORMATS)
def test_a_cross_encoder_gives_the_same_scores(cross_encoder, tmp_path, format):
    folder = export(tmp_path / "exported", format, cross_encoder.model)
    trained, exported = MatchingPredictor(cross_encoder.model, "cpu"), open_predictor(folder)
    np.testing.assert_allclose(exported.score(PAIRS), trained.score(PAIRS), atol=1e-5)
    assert (folder / "README.md").is_file() and "cross_encoder" in (folder / "README.md").read_text(encoding="utf-8")
