"""A depthwise convolution over the tokens of a text, which keeps nothing but its input."""

import paddle
from paddle import Tensor

from paddle_rope.native.dispatch import sizes_of
from paddle_rope.native.library import call, dense
from paddle_rope.native.operator import with_gradients


def native_convolution(
    x: Tensor,
    weight: Tensor,
    key_mask: Tensor | None = None,
    segment_ids: Tensor | None = None,
    causal: bool = False,
) -> Tensor | None:
    """:func:`paddle_rope.convolution.depthwise_convolution`; None where the shapes do not fit."""
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
