"""Write our models as folders that Hugging Face's RoFormer can load."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save

from paddle_rope.options import replace_file, write_json
from paddle_rope.roformer.checkpoints.names import HUGGINGFACE, is_transposed, source_names
from paddle_rope.roformer.checkpoints.reading import ACTIVATION_NAMES, SAME_KEYS
from paddle_rope.roformer.config import ROTARY_DEFAULTS, RoFormerConfig, SequenceClassificationConfig
from paddle_rope.rotary_frequencies import rotary_frequencies

if TYPE_CHECKING:
    from paddle_rope.roformer.pretrained import RoFormerPretrainedModel

# Options that Hugging Face's RoFormer also has.
EXPRESSED = (*SAME_KEYS, "embedding_size", "hidden_act", "causal")
# Options without effect on the outputs of softmax attention with RoPE.
UNUSED = ("attention_window", "feature_map", "normalizer", "decay", "embedding_dropout_prob")
KNOWN = ("RoFormerModel", "RoFormerForMaskedLM", "RoFormerForCausalLM", "RoFormerForSequenceClassification")


def write_huggingface(
    model: RoFormerPretrainedModel, folder: str | os.PathLike, max_position_embeddings: int = 1536
) -> None:
    """Write a model as a folder that Hugging Face's RoFormer reads: ``config.json`` and ``model.safetensors``, float32.

    Args:
        model: :class:`RoFormerModel` or one of the RoFormers with a head. Without token types, their table is zero.
        folder: made if it is missing; files of the same names are replaced.
        max_position_embeddings: rows of Hugging Face's position table, which limit the length of a text.

    Raises ValueError with the reasons if Hugging Face's RoFormer cannot express the model.
    """
    config: Any
    config, kind = model.config, type(model).__name__
    _check_expressible(config, kind)
    sizes = dataclasses.replace(config, type_vocab_size=config.type_vocab_size or 2)
    state = {name: tensor.astype("float32").numpy() for name, tensor in model.state_dict().items()}
    prefix = ""
    if kind == "RoFormerModel":
        state, prefix = {f"roformer.{name}": array for name, array in state.items()}, HUGGINGFACE.prefix
    if not config.type_vocab_size:
        state["roformer.token_type_embedding.weight"] = np.zeros((2, config.embedding_size), np.float32)
    tensors = {}
    for name, source in source_names(sizes, HUGGINGFACE).items():
        if name in state:
            array = state[name].T if is_transposed(name, HUGGINGFACE) else state[name]
            tensors[source.removeprefix(prefix)] = np.ascontiguousarray(array)
    table = f"{HUGGINGFACE.prefix}encoder.embed_positions.weight".removeprefix(prefix)
    angles = np.outer(np.arange(max_position_embeddings), rotary_frequencies(config.head_dim))
    tensors[table] = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
    settings = {
        "model_type": "roformer",
        "architectures": [kind],
        **{key: getattr(sizes, key) for key in SAME_KEYS},
        "embedding_size": config.embedding_size,
        "hidden_act": next(theirs for theirs, ours in ACTIVATION_NAMES.items() if ours == config.hidden_act),
        "rotary_value": config.position_embedding == "qkv",
        "max_position_embeddings": max_position_embeddings,
        "is_decoder": config.causal,
        "tie_word_embeddings": True,
    }
    if isinstance(config, SequenceClassificationConfig):
        settings.update(id2label=config.id2label, label2id=config.label2id)
    write_json(Path(folder) / "config.json", settings)
    # not save_file, which makes a file that only its owner can read
    replace_file(Path(folder) / "model.safetensors", save(tensors, metadata={"format": "pt"}))


def _check_expressible(config, kind):
    """Raise ValueError unless every option exists in Hugging Face's RoFormer or has its default value."""
    if kind not in KNOWN:
        raise ValueError(f"{kind} has no counterpart in Hugging Face's RoFormer; save one of {', '.join(KNOWN)}")
    allowed: dict[str, tuple] = {
        "attention": ("softmax", ["softmax"] * config.num_hidden_layers),
        "position_embedding": ("qk", "qkv"),
    }
    defaults = {one.name: one.default for one in dataclasses.fields(RoFormerConfig)}
    if kind == "RoFormerForSequenceClassification":
        defaults.update(pooling="first", classifier_activation=config.hidden_act)
    problems = []
    for name, default in defaults.items():
        value = getattr(config, name)
        if name == "rotary" and isinstance(value, dict):
            all_features = ROTARY_DEFAULTS, {**ROTARY_DEFAULTS, "rotary_dim": config.head_dim}
            value = None if {**ROTARY_DEFAULTS, **value} in all_features else value
        if name not in (*EXPRESSED, *UNUSED) and value not in allowed.get(name, (default,)):
            problems.append(f"{name} {value!r}")
    if problems:
        raise ValueError(f"Hugging Face's RoFormer does not have {', '.join(problems)}; the model cannot be written")
