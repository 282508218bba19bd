"""A model trained on the demo texts."""

from functools import partial

import pytest
import yaml

from tests.helpers import runs

TINY = {
    "recipe": "classification",
    "dev_fraction": 0.25,
    "max_characters": 48,
    "vocab_min_count": 1,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "hidden_dropout_prob": 0.05,
    "learning_rate": 1e-2,
    "num_train_epochs": 4,
    "logging_steps": 4,
    "device": "cpu",
}


@pytest.fixture(scope="session")
def demo(pytestconfig):
    return pytestconfig.rootpath / "configs/classification/demo.jsonl"


@pytest.fixture(scope="session")
def config_file(demo, tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(yaml.safe_dump({**TINY, "train_file": str(demo)}), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def train(config_file):
    """``train(folder, key=value ...)`` -> what the run has left."""
    return partial(runs.train, config_file)


@pytest.fixture(scope="session")
def trained(train, tmp_path_factory):
    """A model that has learned the classes. Do not change its files."""
    return train(tmp_path_factory.mktemp("trained") / "run", attention="linear", ema_decay=0.9)
