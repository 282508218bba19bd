"""norm(residual + dropout(x)), and dropout alone."""

import math

import paddle
from paddle import Tensor

from paddle_rope.native.library import call, dropout_arguments
from paddle_rope.native.operator import with_gradients


def native_residual_norm(
    residual: Tensor | None, x: Tensor, weight: Tensor | None, bias: Tensor | None, epsilon: float, p: float = 0.0
) -> Tensor | None:
    """norm(residual + dropout_p(x)) over the last axis; None where the shapes do not fit.

    Args:
        residual: of the shape of x; None for 0.
        x: ``[..., width]``.
        weight, bias: ``[width]``, for layer norm; None for RMS norm without them.
        epsilon: added to the variance or the mean square.
        p: probability of the dropout of x, 0 in evaluation.
    """
    if not 0 <= p < 1 or (residual is not None and residual.shape != x.shape) or (weight is None) != (bias is None):
        return None
    if weight is not None and bias is not None and not weight.shape == bias.shape == x.shape[-1:]:
        return None
    rows, width = rows_and_width(x)
    centered, dropout = int(weight is not None), dropout_arguments(p)

    def compute(needs, residual, x, weight, bias):
        y, normalized, deviations = paddle.empty_like(x), None, None
        if any(needs):
            normalized, deviations = paddle.empty_like(x), paddle.empty([rows], x.dtype)
        given = (residual, x, weight, bias, centered, epsilon, *dropout)
        call("residual_norm_forward", rows, width, *given, y, normalized, deviations)

        def differentiate(grad_y):
            grad_residual, grad_x = (paddle.empty_like(grad_y) if needed else None for needed in needs[:2])
            # of both or none
            grad_weight, grad_bias = (paddle.empty_like(weight) if any(needs[2:]) else None for _ in range(2))
            gradients = grad_residual, grad_x, grad_weight, grad_bias
            known = (grad_y, weight, centered, *dropout, normalized, deviations)
            call("residual_norm_backward", rows, width, *known, *gradients)
            return gradients

        return y, differentiate, (normalized, deviations, weight)

    return with_gradients(compute, residual, x, weight, bias)


def native_dropout(x: Tensor, p: float) -> Tensor | None:
    """x times a mask with probability p of 0, scaled so that the mean stays; None for another p."""
    if not 0 < p < 1:
        return None
    (rows, width), dropout = rows_and_width(x), dropout_arguments(p)

    def masked(x):
        y = paddle.empty_like(x)
        call("dropout", rows, width, x, *dropout, y)
        return y

    return with_gradients(lambda needs, x: (masked(x), lambda grad_y: (masked(grad_y),), ()), x)


def rows_and_width(x: Tensor) -> tuple[int, int]:
    """How many rows the tensor has, and how many numbers a row; a scalar is a row of one."""
    return math.prod(x.shape[:-1]), x.shape[-1] if x.ndim else 1
