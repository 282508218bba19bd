"""A small corpus, one model trained on it, files to read, and help for tools that are to fail."""

import contextlib
import json
from types import SimpleNamespace

import evaluate_ner
import numpy as np
import predict_ner
import pytest
import train_ner
import yaml

from tasks.common.runs import epochs
from tasks.ner.demo import write_demo_corpus
from tasks.ner.recipe import NerRecipe
from tasks.ner.reports import monitoring
from tasks.ner.reports.monitoring import NerMonitor

pytest.register_assert_rewrite("tests.tasks.ner.reading")

TINY = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "head_size": 16,
    "hidden_dropout_prob": 0.05,
    "max_characters": 64,
    "per_device_train_batch_size": 8,
    "learning_rate": 1e-2,
    "logging_steps": 4,
    "device": "cpu",
}

EPOCHS = 12
SHOW = NerMonitor.show


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Files of short sentences with nested entities."""
    train, dev = write_demo_corpus(tmp_path_factory.mktemp("corpus"), train_size=150, dev_size=40)
    records = [json.loads(line) for line in dev.read_text(encoding="utf-8").splitlines()]
    return SimpleNamespace(train=train, dev=dev, dev_records=records)


@pytest.fixture(scope="session")
def few_texts(tmp_path_factory):
    """Files for tests that train often: 45 texts, and 10 for dev."""
    train, dev = write_demo_corpus(tmp_path_factory.mktemp("few"), train_size=45, dev_size=10)
    return SimpleNamespace(train=train, dev=dev)


@contextlib.contextmanager
def blank_pictures():
    """Runs draw nothing: it takes longer than a small training. All else that VisualDL shows is as it is."""
    blank = np.full([8, 8, 3], 255, dtype=np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epochs, "_draw", lambda *_: b"")
        for name in ("draw_scores", "draw_reliability"):
            patch.setattr(monitoring, name, lambda *_: blank)
        yield


@pytest.fixture(scope="module", autouse=True)
def without_drawings():
    with blank_pictures():
        yield


@pytest.fixture(scope="module")
def without_pictures():
    """VisualDL shows scores alone, no curves and texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NerMonitor, "show", lambda *_: None)
        yield


@pytest.fixture(scope="module")
def each_epoch_is_better(without_pictures):
    """The best epoch is the last one, whatever it scores."""
    original = NerRecipe.dev_scores

    def dev_scores(self, run):
        return {**original(self, run), "f1": run.trainer.state.global_step / 1000}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NerRecipe, "dev_scores", dev_scores)
        yield


@pytest.fixture(scope="session")
def config_file(corpus, tmp_path_factory):
    """A configuration of a tiny model: all but the output folder."""
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    config = {"train_file": str(corpus.train), "dev_file": str(corpus.dev), **TINY}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def train(config_file):
    """Train a tiny model: ``train(folder, key=value ...)`` -> what the run has left."""

    def train(folder, config=config_file, **overrides):
        words = [word for key, value in overrides.items() for word in (f"--{key}", str(value))]
        assert train_ner.main([str(config), "--output_dir", str(folder), *words]) == 0
        return SimpleNamespace(
            folder=folder,
            model=folder / "model",
            weights=(folder / "model" / "model.safetensors").read_bytes(),
            config=yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8")),
            model_config=json.loads((folder / "model" / "config.json").read_text(encoding="utf-8")),
            metrics=json.loads((folder / "metrics.json").read_text(encoding="utf-8")),
        )

    return train


@pytest.fixture(scope="session")
def trained(train, tmp_path_factory):
    """A model that has learned to find entities. Do not change its files."""
    with blank_pictures(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(NerMonitor, "show", SHOW)  # the first module that asks for it may be one without pictures
        return train(tmp_path_factory.mktemp("trained") / "run", num_train_epochs=EPOCHS)


@pytest.fixture
def evaluate(trained, tmp_path):
    """Scores of the trained model, or of others as one, on a file, by the tool."""

    def evaluate(data, *models):
        output = tmp_path / "scores.json"
        words = [*map(str, models or [trained.model]), str(data), "--output", str(output), "--device", "cpu"]
        assert evaluate_ner.main(words) == 0
        return json.loads(output.read_text(encoding="utf-8"))

    return evaluate


@pytest.fixture
def predict(trained, tmp_path):
    """Records that the tool writes for a text file's content."""

    def predict(content, model=trained.model):
        given, output = tmp_path / "given.txt", tmp_path / "found.jsonl"
        given.write_bytes(content.encode("utf-8"))
        words = [str(model), "--input", str(given), "--output", str(output), "--device", "cpu"]
        assert predict_ner.main(words) == 0
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]

    return predict
