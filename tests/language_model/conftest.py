"""A corpus and a configuration so small that training takes a moment."""

import pytest

from tasks.language_model.arguments import LanguageModelArguments
from tasks.language_model.corpus import load_corpus

TINY = {
    "text_files": "demo",
    "vocab_min_count": 2,
    "length": 8,
    "held_out_windows": 4,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "batch_size": 4,
    "steps": 6,
    "warmup_steps": 2,
    "logging_steps": 1,
    "evaluation_steps": 2,
}


@pytest.fixture(scope="session")
def run():
    return LanguageModelArguments(**TINY)


@pytest.fixture(scope="session")
def corpus(run):
    return load_corpus(run)


@pytest.fixture
def config(tmp_path):
    """Keys of a configuration file, with a folder of its own."""
    return {**TINY, "output_dir": str(tmp_path / "grid"), "seeds": "1,2", "device": "cpu"}
