"""Small models of every recipe and every option that changes a graph."""

from tasks.classification.model import ClassificationConfig, ClassificationModel
from tasks.classification.recipe import ClassificationExporter
from tasks.matching.model import MatchingConfig, MatchingModel
from tasks.matching.recipe import MatchingExporter
from tasks.ner.export import NerExporter
from tasks.ner.model import NerConfig, NerModel

SIZES = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
NER = [
    {},
    {"num_hidden_layers": 3, "attention": ["window", "linear", "softmax"]},
    {"span_head": "dense", "max_span_length": 3},
    {"span_head": "dense", "position_embedding": "qk", "rotary": {"learned": True}, "version": 2},
    {"attention": "linear", "feature_map": "elu_plus_one", "decay": [0.9, 0.5], "share_kv": True},
    {
        **{"attention": "linear", "feature_map": "relu", "normalizer": "none", "hidden_act": "relu"},
        **{"convolutions": True, "output_gate": True, "embedding_size": 8},
    },
    {"attention": "linear", "feature_map": "relu", "position_embedding": "none", "span_rope": False},
    {
        **{"attention": "linear", "feature_map": "exp", "hidden_act": "gelu_tanh"},
        "rotary": {"layout": "half", "rotary_dim": 4},
    },
    {"attention": "linear", "feature_map": "softmax_exp", "normalizer": "none", "position_embedding": "qkvo"},
    {"attention": "linear", "feature_map": "one_plus_cosine", "normalizer": "rotated", "hidden_act": "tanh"},
    {"attention": "linear", "feature_map": "favor", "type_vocab_size": 2},
    {"attention": "window", "causal": True, "max_span_length": 3},
    {"causal": True, "rotary": {"scaling": {"type": "ntk", "factor": 2.0}}},
    {"position_embedding": "o", "rotary": {"scaling": {"type": "yarn", "factor": 2.0, "original_length": 9}}},
    {"position_embedding": "alibi", "rotary": {"scaling": {"type": "linear", "factor": 2.0}}},
    {"position_embedding": "sinusoidal"},
    {"position_embedding": "learned"},
    {"features": {"tables": {"words": 9}, "flags": 3}},
    {"features": {"tables": {"words": 9}, "flags": 0}},
    {"features": {"tables": {}, "flags": 4}},
]
CLASSIFICATION = [
    {"pooling": "mean", "classifier_activation": "tanh"},
    {"pooling": "first", "classifier_activation": "relu"},
    {"classifier_activation": "gelu"},
    {"classifier_activation": "gelu_tanh"},
]
MATCHING = [
    {"architecture": "cross_encoder", "token_type_ids": True, "type_vocab_size": 2},
    {"architecture": "cross_encoder", "pooling": "first"},
    {"architecture": "bi_encoder"},
    {"architecture": "bi_encoder", "pooling": "first"},
]
# (exporter, class of the model, its configuration)
ALL_KINDS = [
    *((NerExporter, NerModel, NerConfig(**{**SIZES, **kind}, types=["a", "b"], head_size=8)) for kind in NER),
    *(
        (ClassificationExporter, ClassificationModel, ClassificationConfig(**SIZES, **kind, classes=["a", "b"]))
        for kind in CLASSIFICATION
    ),
    *((MatchingExporter, MatchingModel, MatchingConfig(**SIZES, **kind)) for kind in MATCHING),
]
