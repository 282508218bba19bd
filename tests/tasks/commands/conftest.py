"""Models with random weights, and labeled files, of each recipe that predicts."""

import json

import pytest

from paddle_rope import CharTokenizer, RoFormerConfig, RoFormerModel
from paddle_rope.tasks.classification.model import ClassificationConfig, ClassificationModel
from paddle_rope.tasks.matching.model import MatchingConfig, MatchingModel
from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from tests.paddle_rope.roformer.small_models import randomise

SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
MODELS = {
    "ner": (NerModel, NerConfig, {"types": ["a"], "head_size": 8}),
    "classification": (ClassificationModel, ClassificationConfig, {"classes": ["x", "y"]}),
    "matching": (MatchingModel, MatchingConfig, {"architecture": "bi_encoder", "threshold": 0.5}),
    "encoder": (RoFormerModel, RoFormerConfig, {}),
}
LABELED = {
    "ner": [{"text": UNSEEN_SENTENCES[0], "label": {"a": {UNSEEN_SENTENCES[0][:2]: [[0, 1]]}}}],
    "classification": [{"text": text, "label": label} for text, label in zip(UNSEEN_SENTENCES, "xy")],
    "matching": [
        {"sentence1": "你好", "sentence2": text, "label": label} for label, text in enumerate(UNSEEN_SENTENCES[:2])
    ],
}


def write_models(home, models):
    """Write models with random weights, as of ``MODELS``; dict from their names to their folders."""
    tokenizer = CharTokenizer.from_corpus(UNSEEN_SENTENCES)
    for recipe, (model, config, options) in models.items():
        tokenizer.save_pretrained(home / recipe)
        randomise(model(config(vocab_size=len(tokenizer), **SIZES, **options))).save_pretrained(home / recipe)
    return {recipe: home / recipe for recipe in models}


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """dict from a recipe, or ``"encoder"``, to the folder of its model."""
    return write_models(tmp_path_factory.mktemp("models"), MODELS)


@pytest.fixture(scope="session")
def labeled(tmp_path_factory):
    """dict from a recipe to a labeled file."""
    home = tmp_path_factory.mktemp("data")
    for recipe, records in LABELED.items():
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (home / f"{recipe}.jsonl").write_text(lines, encoding="utf-8")
    return {recipe: home / f"{recipe}.jsonl" for recipe in LABELED}
