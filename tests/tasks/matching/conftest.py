"""Demo data, and models trained on them."""

from functools import partial
from types import SimpleNamespace

import pytest

from paddle_rope.tasks.matching.demo import write_demo_data
from tests.helpers import runs
from tests.tasks.tiny_recipes import EPOCHS

TINY = {
    **EPOCHS, "recipe": "matching", "architecture": "bi_encoder", "hidden_size": 32, "hidden_dropout_prob": 0.05,
    "attention_probs_dropout_prob": 0, "max_tokens": 40, "per_device_train_batch_size": 20, "logging_steps": 4,
    "num_train_epochs": 5, "vocab_min_count": 1,
}  # fmt: skip


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Paths of demo data: 240 pairs and 60 for dev, as many grades, 48 triples."""
    paths = {path.stem: path for path in write_demo_data(tmp_path_factory.mktemp("demo"))}
    for name, path in paths.items():
        size = 60 if name.endswith("dev") else 240 if name.endswith("train") else 48
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:size]))
    return SimpleNamespace(**paths)


@pytest.fixture(scope="session")
def train(data):
    """Train a tiny bi-encoder on pairs: ``train(folder, key=value ...)`` -> what the run has left."""
    return partial(runs.train, {"train_file": data.pairs_train, "dev_file": data.pairs_dev, **TINY})


@pytest.fixture(scope="session")
def bi_encoder(train, tmp_path_factory):
    """A bi-encoder that has learned pairs. Do not change its files."""
    return train(tmp_path_factory.mktemp("bi") / "run", num_train_epochs=6)


@pytest.fixture(scope="session")
def cross_encoder(whole):
    """A cross-encoder of pairs with token types. Do not change its files."""
    return runs.left_by(whole("matching", architecture="cross_encoder", token_type_ids=True))
