"""Exported classifiers: the same probabilities from a graph."""

import json

import numpy as np
import pytest

from tasks.classification.prediction import Classifier
from tasks.recipes import open_predictor
from tests.helpers.exports import FORMATS, export
from tests.helpers.verbs import verb

predict_classification = verb("predict")

TEXTS = ["球队昨晚客场取胜，主教练很满意。" * 5, "新手机今天发布。", "好"]


@pytest.mark.parametrize("format", FORMATS)
def test_gives_what_the_trained_model_gives(trained, tmp_path, format, capsys):
    folder = export(tmp_path / "exported", format, trained.model)
    predictor = open_predictor(folder, batch_size=2)
    assert isinstance(predictor, Classifier) and predictor.recipe == "classification"
    expected = Classifier(trained.model, "cpu").probabilities(TEXTS)
    np.testing.assert_allclose(predictor.probabilities(TEXTS), expected, atol=1e-5)
    texts, found = tmp_path / "texts.txt", tmp_path / "found.jsonl"
    texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    assert predict_classification.main([str(folder), "--input", str(texts), "--output", str(found)]) == 0
    labels = [json.loads(line)["label"] for line in found.read_text(encoding="utf-8").splitlines()]
    assert labels == [trained.model_config["classes"][best] for best in expected.argmax(axis=1)]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert all(name in card for name in trained.model_config["classes"])
