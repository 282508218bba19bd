"""Threads that share a classifier get what one caller gets."""

import json

import pytest

from tasks.classification.prediction import Classifier
from tests.helpers.exports import FORMATS, export
from tests.helpers.threads import assert_threads_get_what_one_caller_gets


@pytest.mark.parametrize("form", ["trained", *FORMATS])
def test_probabilities(trained, pytestconfig, tmp_path, form):
    folder = trained.model if form == "trained" else export(tmp_path / "model", form, trained.model)
    lines = (pytestconfig.rootpath / "configs/classification/demo.jsonl").read_text(encoding="utf-8").splitlines()
    predictor = Classifier(folder, "cpu", batch_size=4)
    assert_threads_get_what_one_caller_gets(predictor.probabilities, [json.loads(line)["text"] for line in lines[:64]])
    assert not getattr(predictor.model, "training", False)
