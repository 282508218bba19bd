"""An untrained model with word features, and benchmarks of it."""

import json

import pytest

from tasks.commands.main import main
from tasks.ner.data.reading import read_examples
from tasks.ner.demo import write_demo_corpus
from tests.helpers.models import write_small_ner


@pytest.fixture(scope="package")
def demo(tmp_path_factory):
    """(folder of the model, labeled file)"""
    train, dev = write_demo_corpus(tmp_path_factory.mktemp("corpus"), train_size=60, dev_size=30)
    folder = tmp_path_factory.mktemp("models") / "run" / "model"
    return write_small_ner(folder, read_examples(train), with_features=True, thresholds=2.0, max_tokens=64), dev


@pytest.fixture
def measure(demo, tmp_path):
    """``measure(benchmark, *words)``: what it writes of the model."""

    def measure(benchmark, *words):
        model, data, output = *demo, tmp_path / "out.json"
        words = ["benchmark", benchmark, model, "--input", data, "--output", output, *words]
        assert main([*map(str, words)]) == 0
        return json.loads(output.read_text(encoding="utf-8"))

    return measure
