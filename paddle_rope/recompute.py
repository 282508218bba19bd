"""Recomputation: activations of a layer are forgotten in the forward pass and computed again in backward."""

import numpy as np
from paddle.distributed.fleet.utils import recompute


def recompute_layer(layer, *inputs):
    """``layer(*inputs)`` by Paddle's ``recompute``, with the same dropout in both passes.

    Paddle sets its own random numbers back; on CPU our :class:`~paddle_rope.layers.Dropout` draws from numpy, whose
    generator is set back here.

    Args:
        layer: a layer; called once now and once in backward.
        inputs: its arguments; gradients reach tensors among them that need one.

    Returns:
        What the layer returns, a tensor.
    """
    before = np.random.get_state()
    calls = 0

    def run(*arguments):
        nonlocal calls
        calls += 1
        if calls == 1:
            return layer(*arguments)
        now = np.random.get_state()
        np.random.set_state(before)
        try:
            return layer(*arguments)
        finally:
            np.random.set_state(now)

    return recompute(run, *inputs)
