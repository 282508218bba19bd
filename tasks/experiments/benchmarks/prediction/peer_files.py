"""The files of our NER model for PyTorch: the encoder as Hugging Face's RoFormer, word features and head beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.common.errors import InputError
from tasks.ner.features import COLUMNS

if TYPE_CHECKING:
    from tasks.ner.model import NerModel

SETTINGS_FILE, WEIGHTS_FILE = "ner.json", "ner.safetensors"
LEAST_POSITIONS = 1536


def write_peer(model: NerModel, folder: Path) -> None:
    """Write a model into a folder, which is made.

    The linear layers become ``[out, in]``, as PyTorch has them.

    Raises:
        InputError: Hugging Face's RoFormer cannot express it, or it has a band of spans, or it is an ensemble.
    """
    from paddle import nn
    from safetensors.numpy import save

    from paddle_rope.global_pointer import MASKED_LOGIT
    from paddle_rope.roformer.checkpoints import write_huggingface

    config = model.config
    if config.max_span_length is not None or not hasattr(model, "roformer"):
        raise InputError("the model in PyTorch has no band of spans (max_span_length) and is no ensemble")
    try:
        write_huggingface(model.roformer, folder, max(LEAST_POSITIONS, config.max_tokens))
    except ValueError as error:
        raise InputError(str(error)) from None
    features = config.features or {"tables": {}, "flags": 0}
    settings = {
        "span_head": config.span_head,
        "span_rope": config.span_rope,
        "types": len(config.types),
        "columns": [kind for kind in COLUMNS if kind in features["tables"] for _ in range(COLUMNS[kind])],
        "has_flags": bool(features["flags"]),
        "masked_logit": MASKED_LOGIT,
    }
    (folder / SETTINGS_FILE).write_text(json.dumps(settings), encoding="utf-8")
    weights = {}
    for prefix, part in (("head", model.head), ("feature_embedding", getattr(model, "feature_embedding", None))):
        if part is None:
            continue
        linear = {f"{name}.weight" for name, layer in part.named_sublayers() if isinstance(layer, nn.Linear)}
        for name, tensor in part.state_dict().items():
            array = tensor.astype("float32").numpy()
            weights[f"{prefix}.{name}"] = np.ascontiguousarray(array.T if name in linear else array)
    (folder / WEIGHTS_FILE).write_bytes(save(weights))  # save_file makes the file for its owner alone
