"""Names of an encoder's weights here, in Hugging Face, in PaddleNLP and in the original TensorFlow checkpoints.

Sources: the model code of transformers 5.24 and of PaddleNLP 2.8.1, and the name map of bert4keras.
"""

from typing import Any, NamedTuple

from paddle_rope.roformer.config import RoFormerConfig


class Layout(NamedTuple):
    """How a source names the weights of a kind of model, and its defaults for what a folder's configuration lacks."""

    kind: str  # of model: a key of MODELS
    prefix: str  # of the encoder
    transposed: bool  # linear weights are [out, in]
    # (old, new) in order: turn the names of Hugging Face's RoFormer into its names
    changes: tuple[tuple[str, str], ...]
    defaults: dict[str, Any]


MODELS = {"bert": "BERT", "electra": "ELECTRA", "ernie": "ERNIE", "roformer": "RoFormer", "roformerv2": "RoFormerV2"}
WITH_LEARNED_POSITIONS = ("bert", "electra", "ernie")
DEFAULT_SIZES = {
    "vocab_size": 50000,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "type_vocab_size": 2,
}
_DEFAULTS = {**DEFAULT_SIZES, "hidden_act": "gelu", "max_position_embeddings": 512}
_PADDLENLP = (
    (".layer.", ".layers."),
    ("embeddings.LayerNorm", "embeddings.layer_norm"),
    ("attention.self.query", "self_attn.q_proj"),
    ("attention.self.key", "self_attn.k_proj"),
    ("attention.self.value", "self_attn.v_proj"),
    ("attention.output.dense", "self_attn.out_proj"),
    ("attention.output.LayerNorm", "norm1"),
    ("intermediate.dense", "linear1"),
    ("output.dense", "linear2"),
    ("output.LayerNorm", "norm2"),
    ("transform.dense", "transform"),
    ("transform.LayerNorm", "layer_norm"),
    ("predictions.bias", "predictions.decoder_bias"),
)
_POOLED = (("classifier.dense", "roformer.pooler.dense"), ("classifier.out_proj", "classifier"))
_GENERATOR = (("cls.predictions.transform", "generator_predictions"), ("cls.predictions", "generator_lm_head"))
_PADDLENLP_GENERATOR = (
    *_GENERATOR,
    ("generator_predictions.LayerNorm", "generator_predictions.layer_norm"),
    ("generator_lm_head.bias", "generator_lm_head_bias"),
)
_TENSORFLOW = (
    ("roformer.", "bert."),
    (".layer.", ".layer_"),
    ("embeddings_project", "encoder.embedding_hidden_mapping_in"),
    ("predictions.bias", "predictions.output_bias"),
    ("_embeddings.weight", "_embeddings"),
    ("LayerNorm.weight", "LayerNorm.gamma"),
    ("LayerNorm.bias", "LayerNorm.beta"),
    (".weight", ".kernel"),
    (".", "/"),
)


def _layouts(transposed, **kinds):
    return {
        kind: Layout(kind, f"{kind}.", transposed, (*changes, ("roformer.", f"{kind}.")), {**_DEFAULTS, **defaults})
        for kind, (changes, defaults) in kinds.items()
    }


# `pool_act` is the activation of the classifier, without it `hidden_act`
HUGGINGFACE = _layouts(
    True,
    roformer=((), {}),
    bert=(_POOLED, {"pool_act": "tanh"}),
    electra=(_GENERATOR, {}),
    ernie=(_POOLED, {"pool_act": "tanh"}),
)
PADDLENLP = _layouts(
    False,
    roformer=((*_PADDLENLP, *_POOLED), {"vocab_size": 30522, "embedding_size": 768, "pool_act": "tanh"}),
    roformerv2=(_PADDLENLP, {"vocab_size": 12000, "hidden_act": "relu"}),
    bert=((*_PADDLENLP, *_POOLED), {"type_vocab_size": 16, "pool_act": "tanh"}),
    electra=((*_PADDLENLP_GENERATOR, *_PADDLENLP), {}),
    ernie=((*_PADDLENLP, *_POOLED), {"type_vocab_size": 16, "pool_act": "tanh"}),
)
TENSORFLOW = Layout("roformer", "bert/", False, _TENSORFLOW, _DEFAULTS)
# Copies that a file may hold: name of the copy -> name of the original here
COPIES = {
    **dict.fromkeys(
        ("cls.predictions.decoder.weight", "cls.predictions.decoder_weight", "cls.decoder_weight",
         "generator_lm_head.weight"),
        "roformer.token_embedding.weight",
    ),
    "cls.predictions.decoder.bias": "lm_head.bias",
}  # fmt: skip
TASK_TYPES = "embeddings.task_type_embeddings.weight"  # of ERNIE 3.0, after the prefix

# Modules with a weight and a bias: name here -> name in Hugging Face's RoFormer, or in BERT for learned positions
_EMBEDDING = {
    "token_embedding": "embeddings.word_embeddings",
    "token_type_embedding": "embeddings.token_type_embeddings",
    "position_embedding": "embeddings.position_embeddings",
    "embedding_norm": "embeddings.LayerNorm",
    "embedding_projection": "embeddings_project",
}
_BLOCK = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward_in": "intermediate.dense",
    "feed_forward_out": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
_HEADS = {
    "lm_head.dense": "cls.predictions.transform.dense",
    "lm_head.norm": "cls.predictions.transform.LayerNorm",
    "classifier.dense": "classifier.dense",
    "classifier.output": "classifier.out_proj",
}


def source_names(config: RoFormerConfig, layout: Layout) -> dict[str, str]:
    """``{name here: name there}`` for the weights of an encoder with this configuration and of the heads for language
    modeling (except the tied embedding) and classification. Names here begin with ``roformer.``, ``lm_head.`` or
    ``classifier.``; the encoder's names there begin with the layout's prefix.
    """
    modules = {f"roformer.{here}": f"roformer.{there}" for here, there in _EMBEDDING.items()}
    for block in range(config.num_hidden_layers):
        for here, there in _BLOCK.items():
            modules[f"roformer.blocks.{block}.{here}"] = f"roformer.encoder.layer.{block}.{there}"
    modules |= _HEADS
    names = {f"{here}.{leaf}": f"{there}.{leaf}" for here, there in modules.items() for leaf in ("weight", "bias")}
    names["lm_head.bias"] = "cls.predictions.bias"
    for old, new in layout.changes:
        names = {here: there.replace(old, new) for here, there in names.items()}
    return {here: there for here, there in names.items() if _exists(here, config)}


def _exists(name, config):
    """Whether a RoFormer with this configuration, or its head, has the weight ``name``."""
    module, _, leaf = name.rpartition(".")
    if module.endswith("token_type_embedding") and not config.type_vocab_size:
        return False
    if module.endswith("position_embedding") and config.position_embedding != "learned":
        return False
    if module.endswith("embedding_projection") and config.embedding_size == config.hidden_size:
        return False
    if module.endswith("_embedding") and leaf == "bias":
        return False
    is_of_version_1 = leaf == "bias" or "norm" in module or module.startswith("lm_head")
    return config.version == 1 or not is_of_version_1 or module.startswith("classifier")


def is_transposed(name: str, layout: Layout) -> bool:
    """Whether the weight called ``name`` here is stored transposed there, because it belongs to a linear layer."""
    return (
        layout.transposed and name.endswith(".weight") and "norm" not in name and not name.endswith("embedding.weight")
    )
