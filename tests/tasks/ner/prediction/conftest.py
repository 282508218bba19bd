"""A predictor, the texts that it reads, and copies of its folder."""

import json
import shutil

import pytest

from tasks.ner import NerPredictor


@pytest.fixture(scope="module")
def predictor(trained):
    return NerPredictor(trained.model, "cpu")


@pytest.fixture(scope="module")
def dev_texts(corpus):
    return [record["text"] for record in corpus.dev_records]


@pytest.fixture
def copy_with(trained, tmp_path):
    """Copy the trained model: ``copy_with(key=value ...)`` -> its folder, with other values in config.json."""

    def copy_with(**options):
        folder = shutil.copytree(trained.model, tmp_path / "model")
        (folder / "config.json").write_text(json.dumps({**trained.model_config, **options}), encoding="utf-8")
        return folder

    return copy_with


def spans_of(records):
    """(start, end, type) of the entities of each record."""
    return [[(entity["start"], entity["end"], entity["type"]) for entity in record["entities"]] for record in records]
