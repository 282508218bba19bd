"""activation(x W + b)."""

import paddle
from paddle import Tensor

from paddle_rope.native.library import call
from paddle_rope.native.operator import with_gradients
from paddle_rope.native.products import are_rounded, product, rounded
from paddle_rope.native.residual_norm import rows_and_width

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "tanh": 4}  # as in activation.cc
_BY_OUTPUT = ("relu", "tanh")  # whose derivative is computed from the output


def native_linear(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None = None) -> Tensor | None:
    """:func:`paddle_rope.layers.linear`; None where the shapes do not fit."""
    if not x.ndim or weight.ndim != 2 or x.shape[-1] != weight.shape[0] or activation not in ACTIVATIONS:
        return None
    if bias is not None and bias.shape != weight.shape[1:]:
        return None
    (rows, _), width, kind = rows_and_width(x), weight.shape[1], ACTIVATIONS[activation]

    def compute(needs, x, weight, bias):
        is_rounded = are_rounded()
        factors = (rounded(x), rounded(weight)) if is_rounded else (x, weight)
        sums = product(*factors)
        y = sums
        if activation not in (None, *_BY_OUTPUT) and any(needs):
            y = paddle.empty_like(sums)
        if kind or bias is not None:
            call("activation_forward", rows, width, kind, sums, bias, y)
        kept = sums.detach() if kind else None

        def differentiate(grad_y):
            grad_sums = paddle.empty_like(grad_y) if kind else grad_y
            grad_x = grad_weight = None
            grad_bias = paddle.empty([width], grad_y.dtype) if needs[2] else None
            if kind or needs[2]:
                into = grad_sums if kind else None
                call("activation_backward", rows, width, kind, kept, grad_y, into, grad_bias)
            if is_rounded:
                grad_sums = rounded(grad_sums)
            if needs[0]:
                grad_x = product(grad_sums, factors[1], transpose_b=True)
            if needs[1]:
                grad_weight = product(factors[0], grad_sums, transpose_a=True)
            return grad_x, grad_weight, grad_bias

        return y, differentiate, (*factors, kept)

    return with_gradients(compute, x, weight, bias)
