"""Linear layers, embeddings, dropout, norms and short convolutions, with fast forms on CPU."""

import contextlib
import math
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_rope.backend import as_factor, at_least_float32, computes_on_cpu, expanded, padded, scaled
from paddle_rope.native.dispatch import native_form, switched_on
from paddle_rope.native.library import random_seed
from paddle_rope.native.operators import native_convolution, native_dropout, native_linear, native_residual_norm

ACTIVATION_FUNCTIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate=True),
    "relu": F.relu,
    "tanh": paddle.tanh,
}

_LEVELS = 1 << 16  # number of values of the 16-bit random numbers for dropout
_has_no_values = ContextVar("has_no_values", default=False)  # within shapes_only()


def shapes_only() -> contextlib.AbstractContextManager:
    """A context in which new linear and embedding layers have weights of a shape, without values and memory, to learn
    the sizes of a model before it is built. It does not apply to other threads.
    """
    return switched_on(_has_no_values)


class _NoValues(nn.initializer.Initializer):
    def forward(self, var, block=None):
        return var


class _Sized(nn.Layer):
    """The base of layers with large weights: obeys :func:`shapes_only`."""

    def create_parameter(self, shape, attr=None, **options):
        if _has_no_values.get():
            options["default_initializer"] = _NoValues()
        return super().create_parameter(shape, attr, **options)


@native_form(native_linear)
def linear(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None = None) -> Tensor:
    """activation(x W + b): ``[..., in_features]`` -> ``[..., out_features]``; ``bias`` and ``activation``, a name of
    :data:`ACTIVATION_FUNCTIONS`, may be None.

    On CPU, where there are gradients, the bias is added as the outer product 1 b^T, so that its gradient is a matrix
    product, which is much faster than Paddle's reduction of the bias gradient over the batch.
    """
    if bias is None or not computes_on_cpu() or not paddle.is_grad_enabled():
        y = F.linear(x, weight, bias)
    else:
        rows = x.reshape([-1, x.shape[-1]])
        biases = paddle.matmul(paddle.ones([rows.shape[0], 1], dtype=bias.dtype), bias.unsqueeze(0))
        y = (paddle.matmul(rows, weight) + biases).reshape([*x.shape[:-1], weight.shape[1]])
    return y if activation is None else ACTIVATION_FUNCTIONS[activation](y)


class Linear(_Sized, nn.Linear):
    """:func:`linear` with the weights of ``paddle.nn.Linear``."""

    def __init__(
        self, in_features: int, out_features: int, bias_attr: Any = None, activation: str | None = None
    ) -> None:
        super().__init__(in_features, out_features, bias_attr=bias_attr)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias, self.activation)


def projected(x: Tensor, layers: Sequence[Linear], head_dim: int) -> list[Tensor]:
    """``x`` ``[batch, seq, hidden]`` through each of the linear layers: ``[batch, seq, heads, head_dim]``, with as many
    heads as a layer gives.

    Where calling operators is what takes time, on a GPU, it is one product with all weights side by side. On CPU and in
    static graphs, where int8 needs each weight as it is, it is one for each layer.
    """
    if computes_on_cpu() or not paddle.in_dynamic_mode():
        found = [layer(x) for layer in layers]
        return [y.reshape([0, 0, y.shape[-1] // head_dim, head_dim]) for y in found]
    weight = paddle.concat([layer.weight for layer in layers], axis=1)
    bias = None if layers[0].bias is None else paddle.concat([layer.bias for layer in layers])
    y = linear(x, weight, bias).reshape([0, 0, weight.shape[1] // head_dim, head_dim])
    return paddle.split(y, [layer.weight.shape[1] // head_dim for layer in layers], axis=2)


class Embedding(_Sized, nn.Embedding):
    """``paddle.nn.Embedding`` that refuses ids without a row, for which Paddle's kernel may read memory of others: on
    CPU and except in static graphs. ``ids`` and ``remedy`` are what the error calls them and advises.

    >>> Embedding(20, 8, "input_ids")(paddle.to_tensor([[2, -1]]))
    Traceback (most recent call last):
    ValueError: input_ids must be 0 to 19, got -1 at [0, 1]
    """

    def __init__(self, rows: int, size: int, ids: str, remedy: str = "") -> None:
        super().__init__(rows, size)
        self.ids, self.remedy = ids, remedy

    def forward(self, x: Tensor) -> Tensor:
        """Integer ids of any shape -> ``[*x.shape, size]``."""
        if computes_on_cpu():
            ids, rows = x.numpy(), self.weight.shape[0]
            if ids.size and (ids.min() < 0 or ids.max() >= rows):
                place = np.argwhere((ids < 0) | (ids >= rows))[0]
                got = f"got {ids[tuple(place)]} at {place.tolist()}{self.remedy}"
                raise ValueError(f"{self.ids} must be 0 to {rows - 1}, {got}")
        return nn.Embedding.forward(self, x)  # super() fails in static graphs of paddle 2.6.2


@native_form(native_dropout)
def dropout(x: Tensor, p: float) -> Tensor:
    """x with each value dropped with probability p and the others scaled to keep the mean.

    On CPU the mask has a seed from Paddle's generator, which ``paddle.seed`` seeds, and p is rounded to a multiple of
    1/65536, in the native form of 2^-32; the two forms have other masks.
    """
    if p == 0:
        return x
    if not computes_on_cpu() or not 0 < p < 1:
        return F.dropout(x, p)
    dropped = min(round(p * _LEVELS), _LEVELS - 1)
    count = math.prod(x.shape)
    levels = np.random.PCG64(random_seed()).random_raw(-(-count // 4)).view(np.uint16)[:count]
    scale = np.array([0.0, _LEVELS / (_LEVELS - dropped)], dtype=np.float32)
    mask = scale[(levels >= dropped).view(np.uint8)].reshape(x.shape)
    return x * paddle.to_tensor(mask).astype(x.dtype)


class Dropout(nn.Dropout):
    """:func:`dropout` with probability ``p`` in training, the identity in evaluation."""

    @property
    def rate(self) -> float:
        """The current dropout probability: ``p`` in training, 0 in evaluation."""
        return self.p if self.training else 0.0

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate)


class LayerNorm(nn.LayerNorm):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis, of ``size`` features. Without native
    operators on CPU, ``paddle.grad`` by x alone lacks the factor of a trainable weight: give it the weight, too.
    """

    def __init__(self, size: int, epsilon: float = 1e-12) -> None:
        super().__init__(size, epsilon=epsilon)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return _residual_norm(None, x, self.weight, self.bias, self.epsilon)


class RMSNorm(nn.Layer):
    """x / sqrt(mean(x^2) + epsilon) over the last axis, without a weight, as in RoFormer v2 (kexue.fm 8998).

    The mean is taken in float32 at least; the result has the dtype of x.

    >>> RMSNorm()(paddle.to_tensor([[3.0, -3.0]])).tolist()
    [[1.0, -1.0]]
    """

    weight = bias = None

    def __init__(self, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return _residual_norm(None, x, None, None, self.epsilon)


def residual_norm(norm: LayerNorm | RMSNorm, residual: Tensor, x: Tensor, dropout: Dropout) -> Tensor:
    """norm(residual + dropout(x)); ``residual`` and ``x`` have the same shape."""
    return _residual_norm(residual, x, norm.weight, norm.bias, norm.epsilon, dropout.rate)


@native_form(native_residual_norm)
def _residual_norm(residual, x, weight, bias, epsilon, p=0.0):
    """Layer norm (with a weight) or RMS norm (without) of residual + dropout(x)."""
    x = dropout(x, p)
    x = x if residual is None else residual + x
    if weight is None:
        (wide,) = at_least_float32(x)
        return (wide * paddle.rsqrt(wide.square().mean(axis=-1, keepdim=True) + epsilon)).astype(x.dtype)
    if weight.stop_gradient and not x.stop_gradient and computes_on_cpu():
        # Paddle's kernel for CPU omits the weight from the gradient of x if no gradient of the weight is needed
        return F.layer_norm(x, weight.shape, epsilon=epsilon) * weight + bias
    return F.layer_norm(x, weight.shape, weight, bias, epsilon)


@native_form(native_convolution)
def depthwise_convolution(
    x: Tensor, weight: Tensor, key_mask: Tensor | None = None, segment_ids: Tensor | None = None, causal: bool = False
) -> Tensor:
    r"""y_i = sum_{|t| <= radius} w_t * x_{i + t}, feature by feature, size = 2 radius + 1 (MILA, arXiv 2405.16605).

    With ``causal``, -size < t <= 0. The sum skips positions outside the sequence, padding and tokens of other packed
    texts. ``x`` is ``[batch, seq, hidden]``, ``weight`` ``[size, hidden]``, whose first row belongs to the smallest t;
    ``key_mask`` and ``segment_ids`` are as in :func:`~paddle_rope.softmax_attention`. Paddle's grouped convolution is
    slower on short texts and does not know segments.

    >>> x = paddle.to_tensor([[[1.0], [2.0], [4.0]]])
    >>> depthwise_convolution(x, paddle.ones([3, 1])).flatten().tolist()
    [3.0, 7.0, 6.0]
    """
    if key_mask is not None:
        x = scaled(x, as_factor(key_mask, 3, x.dtype))
    size = weight.shape[0]
    before = _before(size, causal)
    around = padded(x, 1, before, size - 1 - before)
    ids = None if segment_ids is None else padded(segment_ids, 1, before, size - 1 - before)
    y = None
    for place, row in enumerate(paddle.unbind(weight.astype(x.dtype), axis=0)):
        here = slice(place, place - size + 1 or None)
        seen = x if place == before else around[:, here]
        if ids is not None and place != before:
            seen = scaled(seen, (ids[:, here] == segment_ids).unsqueeze(-1))
        product = seen * expanded(row, seen.shape)
        y = product if y is None else y + product
    return y


class DepthwiseConvolution(nn.Layer):
    r"""A :func:`depthwise_convolution` over three tokens with a trained weight. It starts as y = ``center`` x: use 0
    for x + y, and 1 if y replaces x.

    >>> DepthwiseConvolution(hidden_size=1, center=1.0)(paddle.to_tensor([[[1.0], [2.0], [4.0]]])).flatten().tolist()
    [1.0, 2.0, 4.0]
    """

    def __init__(self, hidden_size: int, center: float = 0.0, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        weight = np.zeros([3, hidden_size])
        weight[_before(3, causal)] = center
        self.weight = self.create_parameter([3, hidden_size], default_initializer=nn.initializer.Assign(weight))

    def forward(
        self,
        x: Tensor,
        key_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        cache: dict[str, Any] | None = None,
    ) -> Tensor:
        """:func:`depthwise_convolution`. With a ``cache``, {} at the beginning of a text, a causal layer goes on from
        the tokens of the last call."""
        if cache is None:
            return depthwise_convolution(x, self.weight, key_mask, segment_ids, self.causal)
        before = self.weight.shape[0] - 1
        if key_mask is not None:
            x = scaled(x, as_factor(key_mask, 3, x.dtype))
        x = paddle.concat([cache["tokens"], x], axis=1) if cache else padded(x, 1, before)
        cache["tokens"] = x[:, x.shape[1] - before :].detach()
        if x.shape[1] == self.weight.shape[0]:  # one new token
            return (x * self.weight).sum(axis=1, keepdim=True)
        return depthwise_convolution(x, self.weight, causal=True)[:, before:]


def _before(size, causal):
    """Number of tokens before the current one that a kernel sees."""
    return size - 1 if causal else size // 2
