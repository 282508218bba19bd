"""Random queries, keys and values, and masks, for the tests of attention."""

import numpy as np
import paddle

SHAPES = [(1, 1, 1, 2, 1), (2, 3, 5, 4, 3), (3, 1, 7, 6, 6)]  # batch, heads, seq, head_dim, value_dim


def random_qkv(batch, heads, seq, head_dim, value_dim, dtype="float64"):
    """Normal random tensors ``[batch, heads, seq, head_dim or value_dim]`` that take gradients."""
    sizes = (head_dim, head_dim, value_dim)
    qkv = [paddle.to_tensor(np.random.standard_normal((batch, heads, seq, size)), dtype=dtype) for size in sizes]
    for x in qkv:
        x.stop_gradient = False
    return qkv


def ragged_mask(batch, seq):
    """The last row is full, the others lose keys at the end, in the middle or at the start."""
    mask = np.ones((batch, seq), dtype=bool)
    mask[: batch - 1, seq - seq // 3 :] = False
    mask[: batch - 1, 1 : 1 + seq // 5] = False
    if batch > 2:
        mask[1, : seq // 2] = False
    return mask
