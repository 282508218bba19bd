"""A corpus and a configuration so small that training takes a moment."""

from pathlib import Path

import pytest

from paddle_rope.roformer import RoFormerConfig, RoFormerForCausalLM
from tasks.language_model.corpus import load_corpus
from tasks.language_model.recipe import LanguageModelRecipe

TINY = {
    "recipe": "language_model",
    "text_files": str(Path(__file__).resolve().parents[3] / "configs/classification/demo.jsonl"),
    "vocab_min_count": 2,
    "length": 8,
    "held_out_windows": 4,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "per_device_train_batch_size": 4,
    "max_steps": 6,
    "warmup_steps": 2,
    "logging_steps": 1,
    "eval_steps": 2,
    "device": "cpu",
}


@pytest.fixture(scope="session")
def resolve():
    """The parsed configuration with some other keys."""
    return lambda **keys: LanguageModelRecipe().resolve({**TINY, "output_dir": "unused", **keys})


@pytest.fixture(scope="session")
def keys(resolve):
    return resolve().keys


@pytest.fixture(scope="session")
def corpus(keys):
    return load_corpus(keys)


@pytest.fixture
def make_model(corpus, resolve):
    """A new model of some keys."""

    def make_model(**options):
        keys = resolve(**options).keys
        options = {**keys.model_options(), "vocab_size": len(corpus.tokenizer)}
        return RoFormerForCausalLM(RoFormerConfig(**options))

    return make_model
