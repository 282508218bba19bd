"""Names of a RoFormer's weights here, in Hugging Face, in PaddleNLP and in the original TF checkpoints.

Sources: the model code of transformers 5.23 and of PaddleNLP 2.8.1, and the name map of bert4keras.
"""

from typing import Any, NamedTuple

from paddle_rope.roformer.config import RoFormerConfig


class Layout(NamedTuple):
    """How a source names its weights, and its defaults for sizes that a folder's configuration lacks."""

    prefix: str  # of the encoder
    transposed: bool  # linear weights are [out, in]
    changes: tuple[tuple[str, str], ...]  # (old, new) in order: turn Hugging Face's names into its names
    copies: dict  # copies that the file may hold: {name of the copy: name of the original}
    defaults: dict[str, Any]


DEFAULT_SIZES = {
    "vocab_size": 50000,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "type_vocab_size": 2,
}
_DEFAULTS = {**DEFAULT_SIZES, "hidden_act": "gelu"}
_TABLE = "roformer.embeddings.word_embeddings.weight"
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
    ("classifier.dense", "roformer.pooler.dense"),
    ("classifier.out_proj", "classifier"),
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
_COPIES = {"cls.predictions.decoder.weight": _TABLE, "cls.predictions.decoder.bias": "cls.predictions.bias"}
HUGGINGFACE = Layout("roformer.", True, (), _COPIES, _DEFAULTS)
PADDLENLP = Layout(
    "roformer.", False, _PADDLENLP, {"cls.predictions.decoder_weight": _TABLE},
    {**_DEFAULTS, "vocab_size": 30522, "embedding_size": 768, "pool_act": "tanh"},
)  # fmt: skip
PADDLENLP_V2 = Layout(
    "roformerv2.", False, (("roformer.", "roformerv2."), *_PADDLENLP),
    {"cls.decoder_weight": _TABLE.replace("roformer", "roformerv2")},
    {**_DEFAULTS, "vocab_size": 12000, "hidden_act": "relu"},
)  # fmt: skip
TENSORFLOW = Layout("bert/", False, _TENSORFLOW, {}, _DEFAULTS)

# Modules with a weight and a bias: name here -> Hugging Face's
_EMBEDDING = {
    "token_embedding": "embeddings.word_embeddings",
    "token_type_embedding": "embeddings.token_type_embeddings",
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
