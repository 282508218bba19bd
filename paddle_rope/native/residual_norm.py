"""norm(residual + dropout(x)), and dropout by itself."""

import math

import paddle
from paddle import Tensor

from paddle_rope.native.checks import takes_norm
from paddle_rope.native.library import address, computes, dense, dropout_arguments, library
from paddle_rope.native.operator import Operator, keep


@paddle.jit.not_to_static  # which would rewrite what it sees in no graph
def native_residual_norm(
    residual: Tensor | None, x: Tensor, weight: Tensor | None, bias: Tensor | None, epsilon: float, p: float = 0.0
) -> Tensor | None:
    """norm(residual + dropout_p(x)) over the last axis, with the gradients of all; None where only plain forms compute.

    Args:
        residual: of the shape of x; None for 0.
        x: ``[..., width]``.
        weight, bias: ``[width]``, for layer norm; None for RMS norm without them.
        epsilon: added to the variance or the mean square.
        p: probability of the dropout of x, 0 in evaluation.
    """
    if not computes(residual, x, weight, bias) or not 0 <= p < 1 or 0 in x.shape:
        return None
    if not takes_norm(residual, x, weight, bias):
        return None
    return _ResidualNorm.apply(residual, x, weight, bias, epsilon, dropout_arguments(p))


@paddle.jit.not_to_static  # which would rewrite what it sees in no graph
def native_dropout(x: Tensor, p: float) -> Tensor | None:
    """x times a mask with probability p of 0, scaled so that the mean stays; None where only plain forms compute."""
    if not computes(x) or not 0 < p < 1 or 0 in x.shape:
        return None
    return _Dropout.apply(x, dropout_arguments(p))


def rows_and_width(x: Tensor) -> tuple[int, int]:
    """How many rows the tensor has, and how many numbers a row; a scalar is a row of one."""
    width = x.shape[-1] if x.ndim else 1
    return math.prod(x.shape[:-1]), width


class _ResidualNorm(Operator):
    @staticmethod
    def compute(ctx, residual, x, weight, bias, epsilon, dropout):
        given = [tensor for tensor in (residual, x, weight, bias) if tensor is not None]
        residual, x, weight, bias = (None if one is None else dense(one) for one in (residual, x, weight, bias))
        sizes, centered = rows_and_width(x), int(weight is not None)
        y = paddle.empty(x.shape, x.dtype)
        ctx.needs = [not tensor.stop_gradient for tensor in given]
        normalized = inverse_deviations = None
        if any(ctx.needs):
            normalized, inverse_deviations = paddle.empty(x.shape, x.dtype), paddle.empty([sizes[0]], x.dtype)
            keep(ctx, normalized, inverse_deviations, *(() if weight is None else (weight,)))
            ctx.of_call = sizes, centered, dropout, residual is not None
        library().residual_norm_forward(
            *sizes,
            *map(address, (residual, x, weight, bias)),
            *(centered, epsilon),
            *dropout,
            *map(address, (y, normalized, inverse_deviations)),
        )
        return y

    @staticmethod
    def differentiate(ctx, d_y):
        normalized, inverse_deviations, *weight = ctx.saved_tensor()
        sizes, centered, dropout, has_residual = ctx.of_call
        d_y, weight = dense(d_y), weight[0] if weight else None
        needs = iter(ctx.needs)
        d_residual = paddle.empty_like(d_y) if has_residual and next(needs) else None
        d_x = paddle.empty_like(d_y) if next(needs) else None
        d_weight = d_bias = None
        if any(needs):
            d_weight, d_bias = paddle.empty_like(weight), paddle.empty_like(weight)
        library().residual_norm_backward(
            *sizes,
            *map(address, (d_y, weight)),
            centered,
            *dropout,
            *map(address, (normalized, inverse_deviations, d_residual, d_x, d_weight, d_bias)),
        )
        gradients = [d_residual] if has_residual else []
        gradients += [d_x] if weight is None else [d_x, d_weight, d_bias]
        return tuple(gradient if needed else None for gradient, needed in zip(gradients, ctx.needs))


class _Dropout(Operator):
    @staticmethod
    def compute(ctx, x, dropout):
        ctx.dropout = dropout
        return _dropped(x, dropout)

    @staticmethod
    def differentiate(ctx, d_y):
        return _dropped(d_y, ctx.dropout)


def _dropped(x, dropout):
    x, y = dense(x), paddle.empty(x.shape, x.dtype)
    library().dropout(*rows_and_width(x), address(x), *dropout, address(y))
    return y
