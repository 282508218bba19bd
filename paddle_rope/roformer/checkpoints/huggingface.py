"""Write our models as folders that Hugging Face can load: as RoFormer, or with learned positions as BERT or ELECTRA."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save

from paddle_rope.files import replace_file, write_json
from paddle_rope.roformer.checkpoints.names import HUGGINGFACE, MODELS, is_transposed, source_names
from paddle_rope.roformer.checkpoints.reading import ACTIVATION_NAMES, SAME_KEYS
from paddle_rope.roformer.config import ROTARY_DEFAULTS, RoFormerConfig, SequenceClassificationConfig
from paddle_rope.rotary_frequencies import rotary_frequencies

if TYPE_CHECKING:
    from paddle_rope.roformer.pretrained import RoFormerPretrainedModel

# Options that Hugging Face's models also have.
EXPRESSED = (*SAME_KEYS, "embedding_size", "hidden_act", "causal")
# Options without effect on the outputs of softmax attention with RoPE, or that its position table shows.
UNUSED = ("attention_window", "feature_map", "normalizer", "decay", "embedding_dropout_prob", "learned_positions")
CLASSES = {"roformer": "RoFormer", "bert": "Bert", "electra": "Electra"}  # how the names of its classes begin
KNOWN = ("RoFormerModel", "RoFormerForMaskedLM", "RoFormerForCausalLM", "RoFormerForSequenceClassification")


def write_huggingface(
    model: RoFormerPretrainedModel, folder: str | os.PathLike, max_position_embeddings: int = 1536
) -> None:
    """Write a model as a folder that Hugging Face reads: ``config.json`` and ``model.safetensors``, float32.

    A model with learned positions becomes BERT, or ELECTRA if it projects its embeddings, any other one RoFormer.

    Args:
        model: :class:`RoFormerModel` or one of the RoFormers with a head. Without token types, their table is zero.
        folder: made if it is missing; files of the same names are replaced.
        max_position_embeddings: rows of the position table of a RoFormer there, which limit the length of a text.

    Raises ValueError with the reasons if Hugging Face's model cannot express this one.
    """
    config: Any
    config, name, kind = model.config, type(model).__name__, "roformer"
    if config.position_embedding == "learned":
        kind = "bert" if config.embedding_size == config.hidden_size else "electra"
    _check_expressible(config, name, kind)
    layout = HUGGINGFACE[kind]
    sizes = dataclasses.replace(config, type_vocab_size=config.type_vocab_size or 2)
    state = {name: tensor.astype("float32").numpy() for name, tensor in model.state_dict().items()}
    prefix = ""
    if name == "RoFormerModel":
        state, prefix = {f"roformer.{name}": array for name, array in state.items()}, layout.prefix
    if not config.type_vocab_size:
        state["roformer.token_type_embedding.weight"] = np.zeros((2, config.embedding_size), np.float32)
    tensors = {}
    for ours, source in source_names(sizes, layout).items():
        if ours in state:
            array = state[ours].T if is_transposed(ours, layout) else state[ours]
            tensors[source.removeprefix(prefix)] = np.ascontiguousarray(array)
    if kind == "roformer":
        table = f"{layout.prefix}encoder.embed_positions.weight".removeprefix(prefix)
        angles = np.outer(np.arange(max_position_embeddings), rotary_frequencies(config.head_dim))
        tensors[table] = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
    else:
        max_position_embeddings = config.learned_positions
    settings = {
        "model_type": kind,
        "architectures": [name.replace("RoFormer", CLASSES[kind])],
        **{key: getattr(sizes, key) for key in SAME_KEYS},
        "embedding_size": config.embedding_size,
        "hidden_act": next(theirs for theirs, ours in ACTIVATION_NAMES.items() if ours == config.hidden_act),
        "rotary_value": config.position_embedding == "qkv",
        "max_position_embeddings": max_position_embeddings,
        "is_decoder": config.causal,
        "tie_word_embeddings": True,
    }
    if isinstance(config, SequenceClassificationConfig):
        settings["id2label"] = config.id2label
        settings["label2id"] = {label: index for index, label in config.id2label.items()}
    write_json(Path(folder) / "config.json", settings)
    # not save_file, which makes a file that only its owner can read
    replace_file(Path(folder) / "model.safetensors", save(tensors, metadata={"format": "pt"}))


def _check_expressible(config, name, kind):
    """Raise ValueError unless every option exists in Hugging Face's model or has its default value."""
    theirs = f"Hugging Face's {MODELS[kind]}"
    if name not in KNOWN:
        raise ValueError(f"{name} has no counterpart in {theirs}; save one of {', '.join(KNOWN)}")
    allowed: dict[str, tuple] = {one.name: (one.default,) for one in dataclasses.fields(RoFormerConfig)}
    allowed |= {option: (getattr(config, option),) for option in (*EXPRESSED, *UNUSED)}
    allowed["attention"] = ("softmax", ["softmax"] * config.num_hidden_layers)
    allowed["position_embedding"] = ("qk", "qkv") if kind == "roformer" else ("learned",)
    if kind != "roformer":
        allowed["causal"] = (False,)
    if kind == "electra":
        allowed["hidden_act"] = ("gelu",)  # of its heads, whatever is configured
    if name == "RoFormerForSequenceClassification":
        allowed.update(pooling=("first",), classifier_activation=("tanh" if kind == "bert" else config.hidden_act,))
    problems = []
    for option, values in allowed.items():
        value = getattr(config, option)
        if option == "rotary" and isinstance(value, dict):
            all_features = ROTARY_DEFAULTS, {**ROTARY_DEFAULTS, "rotary_dim": config.head_dim}
            value = None if {**ROTARY_DEFAULTS, **value} in all_features else value
        if value not in values:
            problems.append(f"{option} {value!r}")
    if problems:
        raise ValueError(f"{theirs} does not have {', '.join(problems)}; the model cannot be written")
