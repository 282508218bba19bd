"""Recomputation: activations of a layer are discarded in the forward pass and computed again in backward."""

from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn
from paddle.distributed.fleet.utils import recompute


def recompute_layer(layer: nn.Layer, *inputs: Any) -> Tensor:
    """``layer(*inputs)`` by Paddle's ``recompute``, with the same dropout in both passes.

    Paddle restores its own random state; on CPU our :class:`~paddle_rope.layers.Dropout` draws from numpy, whose
    state is restored here. ``inputs`` are a tensor, then any values, including tuples of tensors; gradients reach
    the tensors that need one.

    >>> recompute_layer(paddle.nn.Linear(2, 3), paddle.ones([1, 2])).sum().backward()
    """
    before = np.random.get_state()
    flat = paddle.utils.flatten(inputs)  # Paddle looks for tensors that need gradients among the arguments only
    calls = 0

    def run(*arguments):
        nonlocal calls
        calls += 1
        arguments = paddle.utils.pack_sequence_as(inputs, list(arguments))
        if calls == 1:
            return layer(*arguments)
        now = np.random.get_state()
        np.random.set_state(before)
        try:
            return layer(*arguments)
        finally:
            np.random.set_state(now)

    if all(x.stop_gradient for x in flat if isinstance(x, Tensor)):
        # Otherwise Paddle computes no gradients for the layer, even if its weights need them.
        flat[0] = flat[0].detach()
        flat[0].stop_gradient = False
    return recompute(run, *flat)
