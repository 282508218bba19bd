"""The native forms of :mod:`paddle_rope.layers` and of the convolution; each is None where the shapes do not fit."""

import paddle
from paddle import Tensor

from paddle_rope.native.dispatch import sizes_of, with_gradients
from paddle_rope.native.library import call, dense, dropout_arguments
from paddle_rope.native.products import are_rounded, product, rounded, rows_and_width

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "tanh": 4}  # as in linear.cc
_BY_OUTPUT = ("relu", "tanh")  # whose derivative is computed from the output


def native_linear(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None = None) -> Tensor | None:
    """:func:`paddle_rope.layers.linear`."""
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


def native_residual_norm(
    residual: Tensor | None, x: Tensor, weight: Tensor | None, bias: Tensor | None, epsilon: float, p: float = 0.0
) -> Tensor | None:
    """norm(residual + dropout_p(x)) over the last axis: layer norm with weight and bias, RMS norm without them."""
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
    """:func:`paddle_rope.layers.dropout`; None for another p than 0 < p < 1."""
    if not 0 < p < 1:
        return None
    (rows, width), dropout = rows_and_width(x), dropout_arguments(p)

    def masked(x):
        y = paddle.empty_like(x)
        call("dropout", rows, width, x, *dropout, y)
        return y

    return with_gradients(lambda needs, x: (masked(x), lambda grad_y: (masked(grad_y),), ()), x)


def native_convolution(
    x: Tensor, weight: Tensor, key_mask: Tensor | None = None, segment_ids: Tensor | None = None, causal: bool = False
) -> Tensor | None:
    """:func:`paddle_rope.layers.depthwise_convolution`."""
    sizes = sizes_of(
        (x, "batch seq hidden"),
        (weight, "size hidden"),
        (key_mask, "batch seq", paddle.bool),
        (segment_ids, "batch seq", paddle.int32, paddle.int64),
    )
    if sizes is None or (sizes["size"] % 2 == 0 and not causal):
        return None
    before = sizes["size"] - 1 if causal else sizes["size"] // 2
    masks = dense(key_mask), None if segment_ids is None else dense(segment_ids.astype("int64"))
    arguments = (*x.shape, sizes["size"], before, *masks)

    def compute(needs, x, weight):
        y = paddle.empty_like(x)
        call("convolution_forward", *arguments, x, weight, y)

        def differentiate(grad_y):
            gradients = [paddle.empty_like(one) if needed else None for one, needed in zip((x, weight), needs)]
            call("convolution_backward", *arguments, x, weight, grad_y, *gradients)
            return gradients

        return y, differentiate, (x, weight, *masks)

    return with_gradients(compute, x, weight)
