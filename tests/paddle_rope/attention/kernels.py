"""All attention kernels and what each is compared with, the forms they have, and random inputs."""

import contextlib
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import paddle
import paddle.nn.functional as F

from paddle_rope import (
    RotaryPositionEmbedding,
    linear_attention,
    linear_attention_step,
    softmax_attention,
    window_attention,
)
from paddle_rope.attention.feature_maps import make_feature_map
from paddle_rope.native.dispatch import plain_forms
from paddle_rope.options import FEATURE_MAPS
from tests.helpers.comparison import random_tensor
from tests.paddle_rope import reference

WINDOW = 2
DECAY = {"decay": [0.9, 0.5]}
CAUSAL = {"causal": True}
NORM = {"normalizer": "none"}


def in_pieces(q, k, v, rope=None, key_mask=None, **options):
    """Causal linear attention of 4 tokens, then one, then the rest, each from the state of those before."""
    state, outputs, seq = None, [], q.shape[1]
    for start, end in ((0, 4), (4, 5), (5, seq)):
        if start < min(end, seq):
            here = slice(start, min(end, seq))
            at = None if rope is None else rope._replace(cos=rope.cos[..., here, :], sin=rope.sin[..., here, :])
            mask = None if key_mask is None else key_mask[:, here]
            state, y = linear_attention_step(state, *(x[:, here] for x in (q, k, v)), at, mask, **options)
            assert state.length == here.stop
            outputs.append(y)
    return paddle.concat(outputs, axis=1)


def windowed(q, k, v, *more, **options):
    return window_attention(q, k, v, WINDOW, *more, **options)


class Kernel(NamedTuple):
    """A kernel and its reference; both take options after q, k, v, rotation and mask."""

    attend: Any
    plain: Any
    options: dict  # of both
    of_reference: dict = {}
    native: bool = False
    packs: bool = True

    def __call__(self, *arguments, **more):
        return self.attend(*arguments, **self.options, **more)

    def reference(self, *arguments, **more):
        return self.plain(*arguments, **self.options, **self.of_reference, **more)

    @property
    def linear(self):
        """In time and memory."""
        return self.attend is not softmax_attention


softmax = partial(Kernel, softmax_attention, reference.softmax_attention, native=True)
window = partial(Kernel, windowed, reference.softmax_attention, of_reference={"window": WINDOW})
linear = partial(Kernel, linear_attention, reference.linear_attention, native=True)
recurrent = partial(Kernel, in_pieces, reference.linear_attention, of_reference=CAUSAL, packs=False)


def random_features(projection):
    """phi_w(x) = exp(w . y - |y|^2 / 2), y = x / d^(1/4), of FAVOR+."""

    def phi(x):
        y = x / x.shape[-1] ** 0.25
        exponents = paddle.matmul(y, projection.astype("float64"), transpose_y=True)
        return paddle.exp(exponents - (y * y).sum(axis=-1, keepdim=True) / 2)

    return phi


def softmax_over_keys(mask=None):
    """phi(k) = exp(k_j) / sum_j exp(k_j) over the keys that are no padding."""
    is_key = 1.0 if mask is None else paddle.to_tensor(mask, dtype="float64").unsqueeze([2, 3])
    return lambda k: paddle.exp(k) * is_key / (paddle.exp(k) * is_key).sum(axis=1, keepdim=True)


PHI = {
    "elu_plus_one": reference.elu_plus_one,
    "relu": lambda x: (x + x.abs()) / 2 + 0.1,  # of a query without a positive feature as well
    "exp": paddle.exp,
    "one_plus_cosine": partial(F.normalize, axis=-1),
}


def maps_of(name, mask=None, projection=None):
    """The arguments of the reference for a feature map."""
    if name == "softmax_exp":
        return {"phi_q": F.softmax, "phi_k": softmax_over_keys(mask)}
    phi = random_features(projection) if name == "favor" else PHI[name]
    return {"phi_q": phi, "phi_k": phi, "constant": float(name == "one_plus_cosine")}


def mapped(name, **options):
    """Linear attention with a feature map."""

    def attend(q, *arguments, **more):
        phi = make_feature_map(name, q.shape[3])
        shifted = (lambda x: phi(x) + 0.1) if name == "relu" else phi
        return linear_attention(q, *arguments, feature_map=shifted, **more)

    def plain(q, k, v, turn=None, key_mask=None, **more):
        maps = maps_of(name, key_mask, make_feature_map("favor", q.shape[3]).projection)
        return reference.linear_attention(q, k, v, turn, key_mask, **maps, **more)

    options = {"normalizer": "rotated", **options} if name == "one_plus_cosine" else options
    return Kernel(attend, plain, options, packs=name != "softmax_exp")


KERNELS = {
    "softmax": softmax({}),
    "causal softmax": softmax(CAUSAL),
    "window": window({}),
    "causal window": window(CAUSAL),
    "linear": linear({}),
    "causal linear": linear(CAUSAL),
    "linear, decay": linear(DECAY),
    "causal linear, decay": linear({"decay": (0.9, 0.5), **CAUSAL}),
    "linear, output norm": linear(NORM),
    "causal linear, decay, output norm": linear(NORM | DECAY | CAUSAL),
    **{name: mapped(name) for name in FEATURE_MAPS[1:]},  # the other kernels have the first map
    "rotated denominator": mapped("elu_plus_one", normalizer="rotated"),
    "causal one_plus_cosine, decay": mapped("one_plus_cosine", decay=np.array([0.9, 0.5]), **CAUSAL),
    "recurrent linear": recurrent({}),
    "recurrent linear, decay": recurrent(DECAY),
    "recurrent linear, decay, output norm": recurrent(NORM | DECAY),
}


class Form(NamedTuple):
    """A dtype, how exact it is, and the context in which it is computed."""

    dtype: str
    tolerance: float
    context: Any


FORMS = {
    "float64": Form("float64", 1e-9, plain_forms),
    "float32": Form("float32", 1e-4, plain_forms),
    "native": Form("float32", 2e-4, contextlib.nullcontext),
}


def random_qkv(batch=2, seq=11, heads=2, head_dim=4, value_dim=4, dtype="float64"):
    """Normal random tensors ``[batch, seq, heads, head_dim or value_dim]`` that take gradients."""
    return [random_tensor(batch, seq, heads, size, dtype=dtype) for size in (head_dim, head_dim, value_dim)]


def rope_of(q, offset=0, positions=None, **options):
    """RoPE for q, in its precision."""
    rotary = RotaryPositionEmbedding(q.shape[3], **options)
    dtype = "float64" if q.dtype == paddle.float64 else "float32"
    return rotary.cos_sin(q.shape[1] if positions is None else positions, offset, dtype)


def turn_of(positions, **options):
    """The rotation of the reference."""
    return partial(reference.rotate, positions=positions, **options)


def ragged_mask(batch, seq):
    """The last row is full, the others lose some keys at the end and in the middle, or half at the start."""
    mask = np.ones((batch, seq), dtype=bool)
    mask[: batch - 1, seq - min(seq // 3, 6) :] = False
    mask[: batch - 1, 1 : 1 + min(seq // 5, 6)] = False
    if batch > 2:
        mask[1, : seq // 2] = False
    return mask
