"""Small NER models with random weights, as folders."""

import numpy as np
import paddle

from paddle_rope import CharTokenizer
from tasks.ner.features import FEATURE_KINDS, WordFeatures
from tasks.ner.model import NerConfig, NerModel
from tests.paddle_rope.roformer.small_models import randomise

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
