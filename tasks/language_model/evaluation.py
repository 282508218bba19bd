"""Losses of a language model on held-out text, also at lengths that it was not trained on."""

import dataclasses

import numpy as np
import paddle
import paddle.nn.functional as F

from paddle_rope.roformer import RoFormerForCausalLM
from tasks.common.inference import evaluation_mode

TOKENS_A_BATCH = 2048  # no more at once than a step of training: memory
UNSCALED = "none"


def held_out_losses(model, windows, length):
    """Cross-entropy in nats of every character, read in texts of ``length``: the same characters at any length.

    ``windows`` is int64 ``[windows, size + 1]``, as ``Corpus.held_out``, and ``length`` divides ``size``: float64
    ``[windows * size / length, length]``.
    """
    texts, targets = windows[:, :-1].reshape(-1, length), windows[:, 1:].reshape(-1, length)
    rows = max(1, TOKENS_A_BATCH // length)
    losses = []
    with evaluation_mode(model):
        for first in range(0, len(texts), rows):
            logits = model(paddle.to_tensor(texts[first : first + rows]))
            wanted = paddle.to_tensor(targets[first : first + rows])
            losses.append(F.cross_entropy(logits, wanted, reduction="none").reshape(wanted.shape).numpy())
    return np.concatenate(losses).astype("float64")


def with_scaling(model, scaling):
    """``model`` with its frequencies scaled for longer texts, and the same weights; ``scaling`` is that of
    ``rotary`` in :class:`~paddle_rope.RoFormerConfig`, or None for ``model`` itself."""
    if scaling is None:
        return model
    rotary = {**(model.config.rotary or {}), "scaling": scaling}
    scaled = RoFormerForCausalLM(dataclasses.replace(model.config, rotary=rotary))
    scaled.set_state_dict(model.state_dict())
    return scaled


def measure(model, windows, keys):
    """The measurements of a trained model that the ``keys`` of its run request.

    dict with ``lengths``, if ``evaluation_times`` are given: for each of them, and each scaling, the mean loss.
    """
    if not keys.evaluation_times:
        return {}
    scalings = {UNSCALED: None}
    for factor in keys.scaling_factors or ():
        scalings[f"NTK x{factor:g}"] = {"type": "ntk", "factor": factor}
        scalings[f"YaRN x{factor:g}"] = {"type": "yarn", "factor": factor, "original_length": keys.length}
    entries = []
    for scaling, settings in scalings.items():
        scaled = with_scaling(model, settings)
        for length in (time * keys.length for time in keys.evaluation_times):
            loss = float(held_out_losses(scaled, windows, length).mean())
            entries.append({"scaling": scaling, "length": length, "loss": loss})
    return {"lengths": entries}
