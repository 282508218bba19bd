"""Linear, Dropout and products that broadcast, computed another way on CPU, where Paddle is slow in them; norms.

On other devices, and in static graphs, the former are Paddle's; `paddle-rope benchmark layers` measures the difference.
Where :mod:`paddle_rope.native` is built, its operators take their place.
"""

from collections.abc import Sequence

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_rope.native.activation import native_linear
from paddle_rope.native.projections import native_projections
from paddle_rope.native.residual_norm import native_dropout, native_residual_norm
from paddle_rope.precision import at_least_float32

ACTIVATION_FUNCTIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate=True),
    "relu": F.relu,
    "tanh": paddle.tanh,
}

_LEVELS = 1 << 16  # of the 16-bit random numbers of dropout


def computes_on_cpu() -> bool:
    """Whether what is called now runs on a CPU, outside of static graphs."""
    # not x.place, which the tracing of to_static in paddle 3.x cannot read
    return paddle.in_dynamic_mode() and paddle.get_device() == "cpu"


def first_two(x: Tensor) -> list[int]:
    """The first two sizes of ``x`` for ``reshape``: in static graphs 0, which keeps a size that is not known there."""
    return list(x.shape[:2]) if paddle.in_dynamic_mode() else [0, 0]


class Linear(nn.Linear):
    """y = x W + b, with the bias as the outer product 1 b^T: its gradient is then a matrix product.

    Paddle's CPU kernel reduces the bias gradient over the batch much slower than it multiplies matrices.
    """

    def forward(self, x: Tensor, activation: str | None = None) -> Tensor:
        """``[..., in_features]`` -> ``[..., out_features]``, then an activation of ``ACTIVATION_FUNCTIONS``."""
        y = native_linear(x, self.weight, self.bias, activation)
        if y is not None:
            return y
        y = self._plain(x)
        return y if activation is None else ACTIVATION_FUNCTIONS[activation](y)

    def _plain(self, x):
        if self.bias is None or not computes_on_cpu():
            return nn.Linear.forward(self, x)
        rows = x.reshape([-1, x.shape[-1]])
        bias = paddle.matmul(paddle.ones([rows.shape[0], 1], dtype=self.bias.dtype), self.bias.unsqueeze(0))
        return (paddle.matmul(rows, self.weight) + bias).reshape([*x.shape[:-1], self.weight.shape[1]])


def projections(x: Tensor, *layers: Linear) -> Sequence[Tensor]:
    """What each of the layers gives for ``x``: ``[..., in_features]`` -> ``[..., out_features]`` of each."""
    outputs = None
    if all(type(layer) is Linear for layer in layers):  # not what takes the place of one, to fine-tune it
        outputs = native_projections(x, [layer.weight for layer in layers], [layer.bias for layer in layers])
    return [layer(x) for layer in layers] if outputs is None else outputs


class Dropout(nn.Dropout):
    """Dropout whose mask on CPU comes from numpy's global generator: seed it with ``numpy.random.seed``.

    The probability is rounded to a multiple of 1/65536; kept values are scaled by exactly what keeps the mean. A native
    operator draws a seed for the whole mask there and rounds to 2^-32.

    Args:
        p: probability with which a value is dropped.
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def forward(self, x: Tensor) -> Tensor:
        """``x`` of any shape -> same shape."""
        if not self.training or self.p in (0, 1) or not computes_on_cpu():
            return nn.Dropout.forward(self, x)
        y = native_dropout(x, self.p)
        if y is not None:
            return y
        dropped = min(round(self.p * _LEVELS), _LEVELS - 1)
        levels = np.frombuffer(np.random.bytes(2 * int(np.prod(x.shape))), dtype=np.uint16)
        scale = np.array([0.0, _LEVELS / (_LEVELS - dropped)], dtype=np.float32)
        mask = scale[(levels >= dropped).view(np.uint8)].reshape(x.shape)
        return x * paddle.to_tensor(mask).astype(x.dtype)


class LayerNorm(nn.LayerNorm):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis, of ``size`` features.

    Without native operators on CPU, ask ``paddle.grad`` for the gradient of a trainable weight together with x's
    (or call ``backward``): for x alone Paddle's kernel omits the weight. Frozen weights are handled here.

    Args:
        size: of the last axis.
        epsilon: added to the variance.
    """

    def __init__(self, size: int, epsilon: float = 1e-12) -> None:
        super().__init__(size, epsilon=epsilon)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """``[..., size]`` -> same shape."""
        y = native_residual_norm(None, x, self.weight, self.bias, self.epsilon)
        return self._plain(x) if y is None else y

    def _plain(self, x):
        if not self.weight.stop_gradient or x.stop_gradient or not computes_on_cpu():
            return nn.LayerNorm.forward(self, x)
        # Paddle's kernel for CPU omits the weight from the gradient of x if no gradient of the weight is asked for.
        return F.layer_norm(x, self.weight.shape, epsilon=self.epsilon) * self.weight + self.bias


class RMSNorm(nn.Layer):
    """x / sqrt(mean(x^2) + epsilon) over the last axis, without a weight, as in RoFormer v2 (kexue.fm 8998).

    The mean is taken in float32 at least.

    Args:
        epsilon: added to the mean square.
    """

    def __init__(self, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """``x`` of any shape -> same shape and dtype."""
        y = native_residual_norm(None, x, None, None, self.epsilon)
        return self._plain(x) if y is None else y

    def _plain(self, x):
        (wide,) = at_least_float32(x)
        return (wide * paddle.rsqrt(wide.square().mean(axis=-1, keepdim=True) + self.epsilon)).astype(x.dtype)


def residual_norm(norm: LayerNorm | RMSNorm, residual: Tensor, x: Tensor, dropout: Dropout) -> Tensor:
    """norm(residual + dropout(x)), of tensors of one shape."""
    weight, bias = (norm.weight, norm.bias) if isinstance(norm, LayerNorm) else (None, None)
    y = native_residual_norm(residual, x, weight, bias, norm.epsilon, dropout.p if dropout.training else 0.0)
    return norm(residual + dropout(x)) if y is None else y


def scaled(x: Tensor, factor: Tensor) -> Tensor:
    """``x`` times a factor, numbers or a bool mask, that broadcasts to the shape of ``x``.

    On CPU the factor is expanded first: Paddle's kernels for products of two shapes, backward above all, take longer.
    """
    factor = factor.astype(x.dtype)
    return x * (factor.expand(x.shape) if computes_on_cpu() else factor)


def outer(a: Tensor, b: Tensor) -> Tensor:
    """a_i b_j: ``[..., rows]`` and ``[columns]`` -> ``[..., rows, columns]``.

    On CPU it is a matrix product, since the gradient of b is one then, and not a reduction, which takes longer.
    """
    return paddle.matmul(a.unsqueeze(-1), b.unsqueeze(0)) if computes_on_cpu() else a.unsqueeze(-1) * b
