"""Losses of a language model on held-out text, also at lengths that it was not trained on."""

import copy

import numpy as np
import paddle
import paddle.nn.functional as F

from paddle_rope.roformer import RoFormerForCausalLM

TOKENS_A_BATCH = 2048  # no more at once than a step of training: memory


def held_out_losses(model, windows, length):
    """Cross-entropy of every character, read in texts of ``length``: the same characters at any length.

    Args:
        model: :class:`~paddle_rope.RoFormerForCausalLM`; left in evaluation mode.
        windows: int64 ``[windows, size + 1]``, as ``Corpus.held_out``.
        length: divides ``size``.

    Returns:
        float64 array ``[windows * size / length, length]``, in nats.
    """
    texts, targets = windows[:, :-1].reshape(-1, length), windows[:, 1:].reshape(-1, length)
    rows = max(1, TOKENS_A_BATCH // length)
    model.eval()
    losses = []
    with paddle.no_grad():
        for first in range(0, len(texts), rows):
            logits = model(paddle.to_tensor(texts[first : first + rows]))
            wanted = paddle.to_tensor(targets[first : first + rows])
            losses.append(F.cross_entropy(logits, wanted, reduction="none").reshape(wanted.shape).numpy())
    return np.concatenate(losses).astype("float64")


def with_scaling(model, scaling):
    """``model`` with its frequencies scaled for longer texts, and the same weights.

    Args:
        model: :class:`~paddle_rope.RoFormerForCausalLM` with fixed frequencies.
        scaling: dict as ``rotary_scaling`` of :class:`~paddle_rope.RoFormerConfig`; None for ``model`` itself.
    """
    if scaling is None:
        return model
    config = copy.deepcopy(model.config)
    config.rotary_scaling = scaling
    scaled = RoFormerForCausalLM(config)
    scaled.set_state_dict(model.state_dict())
    return scaled
