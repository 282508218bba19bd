"""How the weights of a RoFormer are called here, by Hugging Face, by PaddleNLP and in the original TF checkpoints.

Sources of the names: the model code of transformers 5.23 and of PaddleNLP 2.8.1, and the name map of bert4keras, whose
models the original checkpoints are. In Hugging Face's files linear weights are ``[out, in]``; elsewhere ``[in, out]``.
"""

from typing import Any, NamedTuple


class Layout(NamedTuple):
    """A way of naming."""

    library: str  # "huggingface", "paddlenlp" or "tensorflow"
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


_WEIGHT, _BIAS = {"weight": "weight"}, {"bias": "bias"}
_PYTHON_LEAVES = {"embedding": _WEIGHT, "linear": _WEIGHT | _BIAS, "norm": _WEIGHT | _BIAS, "bare": {"": ""}}
_TENSORFLOW_LEAVES = {
    **_PYTHON_LEAVES,
    "embedding": {"weight": ""},
    "linear": {"weight": "kernel", "bias": "bias"},
    "norm": {"weight": "gamma", "bias": "beta"},
}
HUGGINGFACE = Layout(
    "huggingface",
    "roformer.",
    ".",
    _PYTHON_LEAVES,
    True,
    ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"),
)
PADDLENLP = Layout("paddlenlp", "roformer.", ".", _PYTHON_LEAVES, False, ("cls.predictions.decoder_weight", None))
PADDLENLP_V2 = Layout("paddlenlp", "roformerv2.", ".", _PYTHON_LEAVES, False, ("cls.decoder_weight", None))
TENSORFLOW = Layout("tensorflow", "bert/", "/", _TENSORFLOW_LEAVES, False, (None, None))

# Name here, kind, shape, Hugging Face's name, PaddleNLP's name.
_EMBEDDING = (
    ("token_embedding", "embedding", ("vocab_size", "embedding_size"), *2 * ("embeddings.word_embeddings",)),
    ("token_type_embedding", "embedding", ("type_vocab_size", "embedding_size"),
     *2 * ("embeddings.token_type_embeddings",)),
    ("embedding_norm", "norm", ("embedding_size",), "embeddings.LayerNorm", "embeddings.layer_norm"),
    ("embedding_projection", "linear", ("embedding_size", "hidden_size"), *2 * ("embeddings_project",)),
)  # fmt: skip
_SQUARE = ("hidden_size", "hidden_size")
_BLOCK_PREFIXES = {
    "huggingface": "encoder.layer.{}.",
    "paddlenlp": "encoder.layers.{}.",
    "tensorflow": "encoder/layer_{}/",
}
_BLOCK = (
    ("attention.query", "linear", _SQUARE, "attention.self.query", "self_attn.q_proj"),
    ("attention.key", "linear", _SQUARE, "attention.self.key", "self_attn.k_proj"),
    ("attention.value", "linear", _SQUARE, "attention.self.value", "self_attn.v_proj"),
    ("attention.output", "linear", _SQUARE, "attention.output.dense", "self_attn.out_proj"),
    ("attention_norm", "norm", ("hidden_size",), "attention.output.LayerNorm", "norm1"),
    ("feed_forward_in", "linear", ("hidden_size", "intermediate_size"), "intermediate.dense", "linear1"),
    ("feed_forward_out", "linear", ("intermediate_size", "hidden_size"), "output.dense", "linear2"),
    ("feed_forward_norm", "norm", ("hidden_size",), "output.LayerNorm", "norm2"),
)
_LM_HEAD = (
    ("lm_head.dense", "linear", ("hidden_size", "embedding_size"),
     "cls.predictions.transform.dense", "cls.predictions.transform"),
    ("lm_head.norm", "norm", ("embedding_size",), "cls.predictions.transform.LayerNorm", "cls.predictions.layer_norm"),
    ("lm_head.bias", "bare", ("vocab_size",), "cls.predictions.bias", "cls.predictions.decoder_bias"),
)  # fmt: skip
_CLASSIFIER = (
    ("classifier.dense", "linear", _SQUARE, "classifier.dense", "roformer.pooler.dense"),
    ("classifier.output", "linear", ("hidden_size", "num_labels"), "classifier.out_proj", "classifier"),
)
# The original's names are Hugging Face's with slashes, but for two.
_TENSORFLOW_NAMES = {
    "embeddings_project": "encoder/embedding_hidden_mapping_in",
    "cls.predictions.bias": "cls/predictions/output_bias",
}


def encoder_weights(config: dict[str, Any], layout: Layout) -> list[Weight]:
    """The weights of the encoder: names here begin with ``roformer.``, names there with the layout's prefix.

    ``config`` holds the sizes and the ``version`` of :class:`RoFormerConfig`.
    """
    is_there = {
        "token_type_embedding": bool(config["type_vocab_size"]),
        "embedding_projection": config["embedding_size"] != config["hidden_size"],
    }
    modules = [module for module in _EMBEDDING if is_there.get(module[0], True)]
    weights = _weights(modules, config, layout, "roformer.", layout.prefix)
    for block in range(config["num_hidden_layers"]):
        source_prefix = layout.prefix + _BLOCK_PREFIXES[layout.library].format(block)
        weights += _weights(_BLOCK, config, layout, f"roformer.blocks.{block}.", source_prefix)
    return weights


def lm_head_weights(config: dict[str, Any], layout: Layout) -> list[Weight]:
    """The weights of the head of a language model beside the tied embedding: as :func:`encoder_weights`."""
    return [] if config["version"] == 2 else _weights(_LM_HEAD, config, layout)


def classifier_weights(config: dict[str, Any], layout: Layout) -> list[Weight]:
    """The weights of the head for sequences, of ``num_labels``: as :func:`encoder_weights`."""
    return _weights(_CLASSIFIER, {**config, "version": 1}, layout)  # biases in version 2 too


def _weights(modules, config, layout, prefix="", source_prefix=""):
    weights = []
    for name, kind, sizes, huggingface, paddlenlp in modules:
        shape = tuple(config[size] for size in sizes)
        source = paddlenlp if layout.library == "paddlenlp" else huggingface
        if layout.library == "tensorflow":
            source = _TENSORFLOW_NAMES.get(source, source.replace(".", "/"))
        for leaf, source_leaf in layout.leaves[kind].items():
            if config["version"] == 2 and kind != "bare" and (kind == "norm" or leaf == "bias"):
                continue
            weights.append(
                Weight(
                    prefix + ".".join(filter(None, (name, leaf))),
                    source_prefix + layout.separator.join(filter(None, (source, source_leaf))),
                    shape[-1:] if leaf == "bias" else shape,
                    layout.transposed and kind == "linear" and leaf == "weight",
                )
            )
    return weights
