"""One model trained on the demo texts, and help for tools that are to fail."""

import gc
import json
from types import SimpleNamespace

import pytest
import train_classification
import yaml

TINY = {
    "train_file": "configs/classification/demo.jsonl",
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
def config_file(pytestconfig, tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    given = {"train_file": str(pytestconfig.rootpath / TINY["train_file"])}
    path.write_text(yaml.safe_dump({**TINY, **given}), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def train(config_file):
    """Train a tiny model: ``train(folder, key=value ...)`` -> what the run has left."""

    def train(folder, **overrides):
        words = [word for key, value in overrides.items() for word in (f"--{key}", str(value))]
        assert train_classification.main([str(config_file), "--output_dir", str(folder), *words]) == 0
        return SimpleNamespace(
            folder=folder,
            model=folder / "model",
            weights=(folder / "model" / "model.safetensors").read_bytes(),
            model_config=json.loads((folder / "model" / "config.json").read_text(encoding="utf-8")),
            metrics=json.loads((folder / "metrics.json").read_text(encoding="utf-8")),
        )

    return train


@pytest.fixture(scope="session")
def trained(train, tmp_path_factory):
    """A model that has learned the classes. Do not change its files."""
    return train(tmp_path_factory.mktemp("trained") / "run", attention="linear", ema_decay=0.9)


@pytest.fixture
def fails(capsys):
    """``fails(tool, *words)``: the tool ends with status 2 and says one line, which is returned."""

    def fails(tool, *words):
        gc.collect()  # a run that was cut off writes its progress bar once more when it is collected
        capsys.readouterr()
        assert tool.main([str(word) for word in words]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")

    return fails
