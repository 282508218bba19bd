"""Several products x W + b of one input."""

from collections.abc import Sequence

import paddle
from paddle import Tensor

from paddle_rope.native.checks import takes_linear
from paddle_rope.native.library import address, computes, dense, library
from paddle_rope.native.operator import Operator, keep
from paddle_rope.native.products import are_rounded, product, rounded
from paddle_rope.native.residual_norm import rows_and_width


@paddle.jit.not_to_static  # which would rewrite what it sees in no graph
def native_projections(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None]
) -> tuple[Tensor, ...] | None:
    """x W + b for each W and b; None where only plain forms compute.

    The gradient of x is summed where the products are made, so no tensors are added afterwards.

    Args:
        x: ``[..., in_features]``.
        weights: two or more ``[in_features, out_features]``.
        biases: as many ``[out_features]``; None for 0.

    Returns:
        ``[..., out_features]`` each.
    """
    if not computes(x, *weights, *biases) or 0 in x.shape:
        return None
    if len(weights) != len(biases) or not takes_linear(x, weights, biases):
        return None
    given = [bias for bias in biases if bias is not None]
    return _Projections.apply(x, [bias is not None for bias in biases], *weights, *given)


class _Projections(Operator):
    @staticmethod
    def compute(ctx, x, has_bias, *parameters):
        dense_ones = [dense(parameter) for parameter in parameters]
        weights, given = dense_ones[: len(has_bias)], iter(dense_ones[len(has_bias) :])
        biases = [next(given) if has else None for has in has_bias]
        needs = [not weight.stop_gradient for weight in weights]
        needs_bias = [None if bias is None else not bias.stop_gradient for bias in biases]
        ctx.needs, ctx.needs_bias, ctx.needs_x = needs, needs_bias, not x.stop_gradient
        rows = dense(x).reshape([-1, x.shape[-1]])
        if are_rounded():
            rows, weights = rounded(rows), [rounded(weight) for weight in weights]
        outputs = []
        for weight, bias in zip(weights, biases):
            y = product(rows, weight)
            if bias is not None:
                library().activation_forward(*rows_and_width(y), 0, *map(address, (y, bias, y)))
            outputs.append(y.reshape([*x.shape[:-1], y.shape[1]]))
        if ctx.needs_x or any(needs) or any(needs_bias):
            ctx.shape = x.shape
            keep(ctx, rows, *weights)
        return tuple(outputs)

    @staticmethod
    def differentiate(ctx, *d_outputs):
        rows, *weights = ctx.saved_tensor()
        d_x, d_weights, d_biases = None, [], []
        for weight, d_y, needs, needs_bias in zip(weights, d_outputs, ctx.needs, ctx.needs_bias):
            d_y = dense(d_y).reshape([rows.shape[0], weight.shape[1]])
            if needs_bias is not None:
                d_biases.append(_column_sums(d_y) if needs_bias else None)
            if rows.dtype == paddle.bfloat16:
                d_y = rounded(d_y)
            if ctx.needs_x:
                d_x = product(d_y, weight, transpose_b=True, onto=d_x)
            d_weights.append(product(rows, d_y, transpose_a=True) if needs else None)
        return (None if d_x is None else d_x.reshape(ctx.shape), *d_weights, *d_biases)


def _column_sums(x):
    sums = paddle.empty([x.shape[1]], x.dtype)
    library().activation_backward(*x.shape, 0, *map(address, (None, x, None, sums)))
    return sums
