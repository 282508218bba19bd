"""Recomputation: activations of a layer are discarded in the forward pass and computed again in backward."""

from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.distributed.fleet.utils import recompute


def recompute_layer(layer: nn.Layer, *inputs: Any) -> Tensor:
    """``layer(*inputs)`` by Paddle's ``recompute``, with the same dropout in both passes.

    ``inputs`` are a tensor, then any values, including tuples of tensors; gradients reach the tensors that need one.

    >>> recompute_layer(paddle.nn.Linear(2, 3), paddle.ones([1, 2])).sum().backward()
    """
    flat = paddle.utils.flatten(inputs)  # Paddle looks for tensors that need gradients among the arguments only

    def run(*arguments):
        return layer(*paddle.utils.pack_sequence_as(inputs, list(arguments)))

    if all(x.stop_gradient for x in flat if isinstance(x, Tensor)):
        # Otherwise Paddle computes no gradients for the layer, even if its weights need them.
        flat[0] = flat[0].detach()
        flat[0].stop_gradient = False
    return recompute(run, *flat)
