"""All attention kernels and what each is compared with, and random inputs."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import paddle

from paddle_rope import (
    RotaryPositionEmbedding,
    linear_attention,
    linear_attention_step,
    reference,
    softmax_attention,
    window_attention,
)

WINDOW = 4


def in_pieces(q, k, v, rope=None, key_mask=None, **options):
    """Causal linear attention of 4 tokens, then one, then the rest, each from the state of those before."""
    state, outputs, seq = None, [], q.shape[1]
    for start, end in ((0, 4), (4, 5), (5, seq)):
        if start < min(end, seq):
            here = slice(start, min(end, seq))
            at = None if rope is None else rope._replace(cos=rope.cos[here], sin=rope.sin[here])
            mask = None if key_mask is None else key_mask[:, here]
            state, y = linear_attention_step(state, *(x[:, here] for x in (q, k, v)), at, mask, **options)
            outputs.append(y)
    return paddle.concat(outputs, axis=1)


def windowed(q, k, v, rope=None, key_mask=None, **options):
    return window_attention(q, k, v, WINDOW, rope, key_mask, **options)


@dataclass
class Kernel:
    """``attend`` and ``plain``, the reference, take their options after q, k, v, rotation and mask."""

    attend: Any
    plain: Any
    options: dict = field(default_factory=dict)
    plain_options: dict | None = None  # those of ``attend`` by default
    packs: bool = True
    linear: bool = True  # in time and memory

    def __call__(self, *arguments, **more):
        return self.attend(*arguments, **self.options, **more)

    def reference(self, *arguments, **more):
        return self.plain(*arguments, **(self.options if self.plain_options is None else self.plain_options), **more)

    @property
    def causal(self):
        return "causal" in (self.options | (self.plain_options or {}))


DECAY = [0.9, 0.5]
CAUSAL = {"causal": True}
KERNELS = {
    "softmax": Kernel(softmax_attention, reference.softmax_attention, linear=False),
    "causal softmax": Kernel(softmax_attention, reference.softmax_attention, CAUSAL, linear=False),
    "window": Kernel(windowed, reference.softmax_attention, {}, {"window": WINDOW}),
    "causal window": Kernel(windowed, reference.softmax_attention, CAUSAL, {"window": WINDOW, **CAUSAL}),
    "linear": Kernel(linear_attention, reference.linear_attention),
    "causal linear": Kernel(linear_attention, reference.linear_attention, {**CAUSAL, "chunk_size": 3}, CAUSAL),
    "linear, decay": Kernel(
        linear_attention, reference.linear_attention, {"decay": DECAY, "chunk_size": 4}, {"decay": DECAY}
    ),
    "linear, decay, one chunk": Kernel(linear_attention, reference.linear_attention, {"decay": DECAY}),
    "causal linear, decay": Kernel(
        linear_attention,
        reference.linear_attention,
        {"decay": DECAY, "chunk_size": 4, **CAUSAL},
        {"decay": DECAY, **CAUSAL},
    ),
    "linear, output norm": Kernel(linear_attention, reference.linear_attention, {"normalizer": "none"}),
    "recurrent linear": Kernel(in_pieces, reference.linear_attention, {}, CAUSAL, packs=False),
    "recurrent linear, decay": Kernel(
        in_pieces, reference.linear_attention, {"decay": DECAY}, {"decay": DECAY, **CAUSAL}, packs=False
    ),
}


def random_qkv(batch=2, seq=11, heads=2, head_dim=4, value_dim=3, dtype="float64"):
    """Normal random tensors ``[batch, seq, heads, head_dim or value_dim]`` that take gradients."""
    sizes = (head_dim, head_dim, value_dim)
    qkv = [paddle.to_tensor(np.random.standard_normal((batch, seq, heads, size)), dtype=dtype) for size in sizes]
    for x in qkv:
        x.stop_gradient = False
    return qkv


def rope_of(q, offset=0, positions=None, **options):
    """RoPE for q, in its precision."""
    rotary = RotaryPositionEmbedding(q.shape[3], **options)
    dtype = "float64" if q.dtype == paddle.float64 else "float32"
    return rotary.cos_sin(q.shape[1] if positions is None else positions, offset, dtype)


def ragged_mask(batch, seq):
    """The last row is full, the others lose keys at the end, in the middle or at the start."""
    mask = np.ones((batch, seq), dtype=bool)
    mask[: batch - 1, seq - seq // 3 :] = False
    mask[: batch - 1, 1 : 1 + seq // 5] = False
    if batch > 2:
        mask[1, : seq // 2] = False
    return mask


def assert_same_with_gradients(attended, expected, inputs, exact, tolerance=1e-10, relative=None):
    relative = tolerance if relative is None else relative
    np.testing.assert_allclose(
        attended.astype("float64").numpy(), expected.numpy(), rtol=relative, atol=tolerance, err_msg="output"
    )
    towards = paddle.to_tensor(np.random.randint(-3, 4, expected.shape).astype(np.float64))  # exact in any dtype
    gradients = paddle.grad((attended.astype("float64") * towards).sum(), inputs)
    expected_gradients = paddle.grad((expected * towards).sum(), exact)
    for name, gradient, of_exact in zip(("q", "k", "v", "decay"), gradients, expected_gradients):
        np.testing.assert_allclose(
            gradient.astype("float64").numpy(), of_exact.numpy(), rtol=relative, atol=tolerance, err_msg=name
        )


def cast(tensors, dtype):
    """Copies in a dtype that take gradients."""
    copies = [x.detach().astype(dtype) for x in tensors]
    for x in copies:
        x.stop_gradient = False
    return copies
