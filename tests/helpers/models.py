"""Small models with random weights, exported models, and threads that share one."""

import importlib.util

import numpy as np
import paddle
import pytest

from paddle_rope import CharTokenizer
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.demo import write_demo_corpus
from paddle_rope.tasks.ner.features import FEATURE_KINDS, WordFeatures
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from tests.paddle_rope.roformer.small_models import randomise

HAS_ONNX = importlib.util.find_spec("paddle2onnx") is not None and not paddle.__version__.startswith("2.")
FORMATS = ("onnx", "paddle") if HAS_ONNX else ("paddle",)
needs_onnx = pytest.mark.skipif(not HAS_ONNX, reason="paddle2onnx wants Paddle 3 and Python 3.12 or older")


def export(output, format, *words):
    """Export models by the verb, with its other ``words``; returns ``output``."""
    words = [*map(str, words), "--output", str(output), "--format", format]
    assert main(["export", *words]) == 0
    return output


SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "head_size": 8}


def write_small_ner(folder, examples, with_features=False, **options):
    """Write a model for the types and characters of labeled examples, always the same one; returns the folder."""
    paddle.seed(2021)
    np.random.seed(2021)
    tokenizer = CharTokenizer.from_corpus(example.text for example in examples)
    types = sorted({entity.type for example in examples for entity in example.entities})
    folder.mkdir(parents=True, exist_ok=True)
    if with_features:
        known = sorted({one.text[entity.start : entity.end] for one in examples for entity in one.entities})
        features = WordFeatures.from_examples(examples, FEATURE_KINDS, known_words=known)
        features.save_pretrained(folder)
        options["features"] = features.sizes
    model = NerModel(NerConfig(**{**SIZES, "types": types, "vocab_size": len(tokenizer), **options}))
    randomise(model, 0.5).save_pretrained(str(folder))
    tokenizer.save_pretrained(folder)
    return folder


def write_demo_ner(folder):
    """Write a small NER model and the demo data that it is for; returns the model's folder and a labeled file."""
    train, dev = write_demo_corpus(folder, train_size=60, dev_size=30)
    model = folder / "run" / "model"
    return write_small_ner(model, read_examples(train), with_features=True, thresholds=2.0, max_characters=64), dev


def like(value):
    """A value equal to others that differ in the last digits of numbers: batches of other sizes add up otherwise."""
    if isinstance(value, dict):
        return {name: like(one) for name, one in value.items()}
    if isinstance(value, list):
        return list(map(like, value))
    return pytest.approx(value, abs=2e-4) if isinstance(value, float) else value
