"""activation(x W + b)."""

import paddle
from paddle import Tensor

from paddle_rope.native.checks import takes_linear
from paddle_rope.native.library import address, computes, dense, library
from paddle_rope.native.operator import Operator, keep
from paddle_rope.native.products import are_rounded, product, rounded
from paddle_rope.native.residual_norm import rows_and_width

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "tanh": 4}  # as in activation.cc
_BY_OUTPUT = ("relu", "tanh")  # whose derivative is computed from the output


@paddle.jit.not_to_static  # which would rewrite what it sees in no graph
def native_linear(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None = None) -> Tensor | None:
    """activation(x W + b) with the gradients of all; None where only plain forms compute.

    Args:
        x: ``[..., in_features]``.
        weight: ``[in_features, out_features]``.
        bias: ``[out_features]``; None for 0.
        activation: a name of :data:`ACTIVATIONS`.
    """
    if not computes(x, weight, bias) or activation not in ACTIVATIONS or 0 in x.shape:
        return None
    if not takes_linear(x, [weight], [bias]):
        return None
    return _Linear.apply(x, weight, bias, activation)


class _Linear(Operator):
    @staticmethod
    def compute(ctx, x, weight, bias, activation):
        needs = [not tensor.stop_gradient for tensor in (x, weight, bias) if tensor is not None]
        rows, weight = dense(x).reshape([-1, x.shape[-1]]), dense(weight)
        bias = None if bias is None else dense(bias)
        if are_rounded():
            rows, weight = rounded(rows), rounded(weight)
        sums = product(rows, weight)
        sizes, kind = rows_and_width(sums), ACTIVATIONS[activation]
        y = sums
        if activation not in (None, *_BY_OUTPUT) and any(needs):
            y = paddle.empty(sums.shape, sums.dtype)
        if kind or bias is not None:
            library().activation_forward(*sizes, kind, *map(address, (sums, bias, y)))
        if any(needs):
            ctx.needs, ctx.of_call, ctx.shape = needs, (sizes, kind), x.shape
            # detached: y itself would hold the node that holds it
            keep(ctx, rows, weight, *((sums.detach(),) if kind else ()))
        return y.reshape([*x.shape[:-1], weight.shape[1]])

    @staticmethod
    def differentiate(ctx, d_y):
        rows, weight, *known = ctx.saved_tensor()
        sizes, kind = ctx.of_call
        d_sums = dense(d_y).reshape(list(sizes))
        d_x = d_weight = d_bias = None
        if len(ctx.needs) == 3 and ctx.needs[2]:
            d_bias = paddle.empty([sizes[1]], d_y.dtype)
        if kind or d_bias is not None:
            given, d_sums = d_sums, paddle.empty(list(sizes), d_y.dtype) if kind else d_sums
            known, into = (known[0], d_sums) if kind else (None, None)
            library().activation_backward(*sizes, kind, *map(address, (known, given, into, d_bias)))
        if rows.dtype == paddle.bfloat16:
            d_sums = rounded(d_sums)
        if ctx.needs[0]:
            d_x = product(d_sums, weight, transpose_b=True).reshape(ctx.shape)
        if ctx.needs[1]:
            d_weight = product(rows, d_sums, transpose_a=True)
        return (d_x, d_weight, d_bias)[: len(ctx.needs)]
