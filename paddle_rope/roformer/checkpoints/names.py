"""How the weights of a RoFormer are called here, by Hugging Face, by PaddleNLP and in the original TF checkpoints.

Sources of the names: the model code of transformers 5.23 and of PaddleNLP 2.8.1, and the name map of bert4keras, whose
models the original checkpoints are. In Hugging Face's files linear weights are ``[out, in]``; elsewhere ``[in, out]``.
"""

from typing import NamedTuple


class Layout(NamedTuple):
    """A way of naming."""

    column: int  # of the tables below
    prefix: str  # of the encoder
    separator: str
    leaves: dict  # by the kind of module: {leaf here: leaf there}
    transposed: bool  # linear weights are [out, in]
    decoder: tuple  # copies of the token embedding and of the language model head's bias, as far as there are


class Weight(NamedTuple):
    """One tensor: its name here and there, its shape here, and whether it is transposed there."""

    name: str
    source: str
    shape: tuple
    transposed: bool


_LEAVES = {"embedding": {"weight": "weight"}, "bare": {"": ""}}
_PYTHON_LEAVES = {
    **_LEAVES,
    "linear": {"weight": "weight", "bias": "bias"},
    "norm": {"weight": "weight", "bias": "bias"},
}
_TENSORFLOW_LEAVES = {
    **_LEAVES,
    "embedding": {"weight": ""},
    "linear": {"weight": "kernel", "bias": "bias"},
    "norm": {"weight": "gamma", "bias": "beta"},
}
HUGGINGFACE = Layout(
    0, "roformer.", ".", _PYTHON_LEAVES, True, ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
)
PADDLENLP = Layout(1, "roformer.", ".", _PYTHON_LEAVES, False, ("cls.predictions.decoder_weight", None))
PADDLENLP_V2 = Layout(1, "roformerv2.", ".", _PYTHON_LEAVES, False, ("cls.decoder_weight", None))
TENSORFLOW = Layout(2, "bert/", "/", _TENSORFLOW_LEAVES, False, (None, None))

# Name here, kind, shape, then the names in the three columns of ``Layout.column``.
_EMBEDDING = (
    (
        "token_embedding",
        "embedding",
        ("vocab_size", "embedding_size"),
        ("embeddings.word_embeddings", "embeddings.word_embeddings", "embeddings/word_embeddings"),
    ),
    (
        "token_type_embedding",
        "embedding",
        ("type_vocab_size", "embedding_size"),
        ("embeddings.token_type_embeddings", "embeddings.token_type_embeddings", "embeddings/token_type_embeddings"),
    ),
    (
        "embedding_norm",
        "norm",
        ("embedding_size",),
        ("embeddings.LayerNorm", "embeddings.layer_norm", "embeddings/LayerNorm"),
    ),
    (
        "embedding_projection",
        "linear",
        ("embedding_size", "hidden_size"),
        ("embeddings_project", "embeddings_project", "encoder/embedding_hidden_mapping_in"),
    ),
)
_SQUARE = ("hidden_size", "hidden_size")
_BLOCK_PREFIXES = ("encoder.layer.{}.", "encoder.layers.{}.", "encoder/layer_{}/")
_BLOCK = (
    ("attention.query", "linear", _SQUARE, ("attention.self.query", "self_attn.q_proj", "attention/self/query")),
    ("attention.key", "linear", _SQUARE, ("attention.self.key", "self_attn.k_proj", "attention/self/key")),
    ("attention.value", "linear", _SQUARE, ("attention.self.value", "self_attn.v_proj", "attention/self/value")),
    ("attention.output", "linear", _SQUARE, ("attention.output.dense", "self_attn.out_proj", "attention/output/dense")),
    (
        "attention_norm",
        "norm",
        ("hidden_size",),
        ("attention.output.LayerNorm", "norm1", "attention/output/LayerNorm"),
    ),
    (
        "feed_forward_in",
        "linear",
        ("hidden_size", "intermediate_size"),
        ("intermediate.dense", "linear1", "intermediate/dense"),
    ),
    (
        "feed_forward_out",
        "linear",
        ("intermediate_size", "hidden_size"),
        ("output.dense", "linear2", "output/dense"),
    ),
    ("feed_forward_norm", "norm", ("hidden_size",), ("output.LayerNorm", "norm2", "output/LayerNorm")),
)
_LM_HEAD = (
    (
        "lm_head.dense",
        "linear",
        ("hidden_size", "embedding_size"),
        ("cls.predictions.transform.dense", "cls.predictions.transform", "cls/predictions/transform/dense"),
    ),
    (
        "lm_head.norm",
        "norm",
        ("embedding_size",),
        ("cls.predictions.transform.LayerNorm", "cls.predictions.layer_norm", "cls/predictions/transform/LayerNorm"),
    ),
    (
        "lm_head.bias",
        "bare",
        ("vocab_size",),
        ("cls.predictions.bias", "cls.predictions.decoder_bias", "cls/predictions/output_bias"),
    ),
)
_CLASSIFIER = (
    ("classifier.dense", "linear", _SQUARE, ("classifier.dense", "roformer.pooler.dense", None)),
    ("classifier.output", "linear", ("hidden_size", "num_labels"), ("classifier.out_proj", "classifier", None)),
)


def encoder_weights(config, layout):
    """The weights of the encoder.

    Args:
        config: dict of the sizes and the ``version`` of :class:`RoFormerConfig`.
        layout: a :class:`Layout`.

    Returns:
        List of :class:`Weight`; names here begin with ``roformer.``, names there with the layout's prefix.
    """
    modules = list(_EMBEDDING)
    if not config["type_vocab_size"]:
        modules = [module for module in modules if module[0] != "token_type_embedding"]
    if config["embedding_size"] == config["hidden_size"]:
        modules = [module for module in modules if module[0] != "embedding_projection"]
    for block in range(config["num_hidden_layers"]):
        block_prefix = _BLOCK_PREFIXES[layout.column].format(block)
        for name, kind, shape, sources in _BLOCK:
            renamed = [
                block_prefix + source if column == layout.column else None for column, source in enumerate(sources)
            ]
            modules.append((f"blocks.{block}.{name}", kind, shape, renamed))
    return _weights(modules, config, layout, "roformer.", layout.prefix)


def lm_head_weights(config, layout):
    """The weights of the head of a language model beside the tied embedding: as :func:`encoder_weights`."""
    if config["version"] == 2:
        return []
    return _weights(_LM_HEAD, config, layout)


def classifier_weights(config, layout):
    """The weights of the head for sequences, of ``num_labels``: as :func:`encoder_weights`."""
    return _weights(_CLASSIFIER, {**config, "version": 1}, layout)  # biases in version 2 too


def _weights(modules, config, layout, prefix="", source_prefix=""):
    weights = []
    for name, kind, sizes, sources in modules:
        shape = tuple(config[size] for size in sizes)
        for leaf, source_leaf in layout.leaves[kind].items():
            if config["version"] == 2 and kind != "bare" and (kind == "norm" or leaf == "bias"):
                continue
            source = source_prefix + layout.separator.join(filter(None, (sources[layout.column], source_leaf)))
            weights.append(
                Weight(
                    prefix + ".".join(filter(None, (name, leaf))),
                    source,
                    shape[-1:] if leaf == "bias" else shape,
                    layout.transposed and kind == "linear" and leaf == "weight",
                )
            )
    return weights
