"""How the weights of a RoFormer are called here, by Hugging Face, by PaddleNLP and in the original TF checkpoints.

Sources: the model code of transformers 5.23 and of PaddleNLP 2.8.1, and the name map of bert4keras. In Hugging Face's
files linear weights are ``[out, in]``; elsewhere ``[in, out]``.
"""

from typing import Any, NamedTuple

from paddle_rope.roformer.config import RoFormerConfig


class Layout(NamedTuple):
    """How a source names its weights, and what it takes for a size that a folder's configuration lacks."""

    column: int  # of the tables below that names the modules
    prefix: str  # of the encoder
    block: str  # of block {} in the encoder
    transposed: bool  # linear weights are [out, in]
    copies: dict  # copies that the file may hold: {name of the copy: name of the original}
    defaults: dict[str, Any]


class Weight(NamedTuple):
    """One tensor: its name here and there, and whether it is transposed there."""

    name: str
    source: str
    transposed: bool


LEAVES = {"embedding": ["weight"], "linear": ["weight", "bias"], "norm": ["weight", "bias"], "bare": [""]}
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
HUGGINGFACE = Layout(
    column=2,
    prefix="roformer.",
    block="encoder.layer.{}.",
    transposed=True,
    copies={"cls.predictions.decoder.weight": _TABLE, "cls.predictions.decoder.bias": "cls.predictions.bias"},
    defaults=_DEFAULTS,
)
PADDLENLP = HUGGINGFACE._replace(
    column=3,
    block="encoder.layers.{}.",
    transposed=False,
    copies={"cls.predictions.decoder_weight": _TABLE},
    defaults={**_DEFAULTS, "vocab_size": 30522, "embedding_size": 768, "pool_act": "tanh"},
)
PADDLENLP_V2 = PADDLENLP._replace(
    prefix="roformerv2.",
    copies={"cls.decoder_weight": _TABLE.replace("roformer", "roformerv2")},
    defaults={**_DEFAULTS, "vocab_size": 12000, "hidden_act": "relu"},
)
TENSORFLOW = Layout(2, "bert/", "encoder/layer_{}/", False, {}, _DEFAULTS)

# Name here, kind, Hugging Face's name, PaddleNLP's name.
_EMBEDDING = (
    ("token_embedding", "embedding", "embeddings.word_embeddings", "embeddings.word_embeddings"),
    ("token_type_embedding", "embedding", "embeddings.token_type_embeddings", "embeddings.token_type_embeddings"),
    ("embedding_norm", "norm", "embeddings.LayerNorm", "embeddings.layer_norm"),
    ("embedding_projection", "linear", "embeddings_project", "embeddings_project"),
)
_BLOCK = (
    ("attention.query", "linear", "attention.self.query", "self_attn.q_proj"),
    ("attention.key", "linear", "attention.self.key", "self_attn.k_proj"),
    ("attention.value", "linear", "attention.self.value", "self_attn.v_proj"),
    ("attention.output", "linear", "attention.output.dense", "self_attn.out_proj"),
    ("attention_norm", "norm", "attention.output.LayerNorm", "norm1"),
    ("feed_forward_in", "linear", "intermediate.dense", "linear1"),
    ("feed_forward_out", "linear", "output.dense", "linear2"),
    ("feed_forward_norm", "norm", "output.LayerNorm", "norm2"),
)
_LM_HEAD = (
    ("lm_head.dense", "linear", "cls.predictions.transform.dense", "cls.predictions.transform"),
    ("lm_head.norm", "norm", "cls.predictions.transform.LayerNorm", "cls.predictions.layer_norm"),
    ("lm_head.bias", "bare", "cls.predictions.bias", "cls.predictions.decoder_bias"),
)
_CLASSIFIER = (
    ("classifier.dense", "linear", "classifier.dense", "roformer.pooler.dense"),
    ("classifier.output", "linear", "classifier.out_proj", "classifier"),
)
# The original's names are Hugging Face's with slashes, but for these.
_TENSORFLOW_NAMES = {
    "embeddings_project": "encoder/embedding_hidden_mapping_in",
    "cls.predictions.bias": "cls/predictions/output_bias",
}
_TENSORFLOW_LEAVES = {
    ("embedding", "weight"): "",
    ("linear", "weight"): "kernel",
    ("norm", "weight"): "gamma",
    ("norm", "bias"): "beta",
}


def weights_of(config: RoFormerConfig, layout: Layout, head: str | None = None) -> list[Weight]:
    """The weights of an encoder of this configuration, then of its head: ``"lm"`` (all but the tied embedding),
    ``"classifier"`` or None. Names here begin with ``roformer.``, names there with the layout's prefix.

    Example:
        >>> weights_of(RoFormerConfig(num_hidden_layers=1), HUGGINGFACE)[0]
        Weight(name='roformer.token_embedding.weight', source='roformer.embeddings.word_embeddings.weight', ...)
    """
    absent = set() if config.type_vocab_size else {"token_type_embedding"}
    if config.embedding_size == config.hidden_size:
        absent.add("embedding_projection")
    embedding = [module for module in _EMBEDDING if module[0] not in absent]
    weights = _weights(embedding, config, layout, "roformer.", layout.prefix)
    for block in range(config.num_hidden_layers):
        source_prefix = layout.prefix + layout.block.format(block)
        weights += _weights(_BLOCK, config, layout, f"roformer.blocks.{block}.", source_prefix)
    if head == "lm" and config.version == 1:
        weights += _weights(_LM_HEAD, config, layout)
    if head == "classifier":
        weights += _weights(_CLASSIFIER, config, layout)
    return weights


def _weights(modules, config, layout, prefix="", source_prefix=""):
    separator, weights = "/" if layout is TENSORFLOW else ".", []
    for module in modules:
        name, kind, source = module[0], module[1], module[layout.column]
        if layout is TENSORFLOW:
            source = _TENSORFLOW_NAMES.get(source, source.replace(".", "/"))
        for leaf in LEAVES[kind]:
            is_of_version_1 = kind == "norm" or leaf == "bias"  # a classifier has biases in both
            if config.version == 2 and is_of_version_1 and modules is not _CLASSIFIER:
                continue
            there = _TENSORFLOW_LEAVES.get((kind, leaf), leaf) if layout is TENSORFLOW else leaf
            weights.append(
                Weight(
                    prefix + ".".join(filter(None, (name, leaf))),
                    source_prefix + separator.join(filter(None, (source, there))),
                    layout.transposed and kind == "linear" and leaf == "weight",
                )
            )
    return weights
