"""Small models with random weights, exported models, and threads that share one."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import paddle

from paddle_rope import CharTokenizer
from tasks.commands.main import main
from tasks.ner.features import FEATURE_KINDS, WordFeatures
from tasks.ner.model import NerConfig, NerModel
from tests.paddle_rope.roformer.small_models import randomise

# paddle2onnx wants Paddle 3, and has no wheel for Python 3.13
HAS_ONNX = importlib.util.find_spec("paddle2onnx") is not None and not paddle.__version__.startswith("2.")
FORMATS = ("onnx", "paddle") if HAS_ONNX else ("paddle",)


def export(output, format, *models):
    """Export models by the verb; returns ``output``."""
    words = [*map(str, models), "--output", str(output), "--format", format]
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
        features = WordFeatures.from_examples(examples, FEATURE_KINDS)
        features.save_pretrained(folder)
        options["features"] = features.sizes
    model = NerModel(NerConfig(**{**SIZES, "types": types, "vocab_size": len(tokenizer), **options}))
    randomise(model, 0.5).save_pretrained(str(folder))
    tokenizer.save_pretrained(folder)
    return folder


THREADS, ROUNDS = 8, 4


def assert_threads_get_what_one_caller_gets(predict, items):
    """``predict``, called by 8 threads at once with parts of the items, gives the numbers that it gives one caller."""
    parts = [items[start::THREADS] for start in range(THREADS)]
    alone = [np.asarray(predict(part)) for part in parts]
    assert all(np.abs(part - alone[0][: len(part)]).max() > 1e-3 for part in alone[1:]), "results could be exchanged"
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(predict, parts * ROUNDS))
    for found, expected in zip(together, alone * ROUNDS, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
