"""A depthwise convolution over the tokens of a text, which keeps nothing but its input."""

import paddle
from paddle import Tensor

from paddle_rope.native.checks import takes_convolution
from paddle_rope.native.library import address, computes, dense, library
from paddle_rope.native.operator import Operator, keep


@paddle.jit.not_to_static  # which would rewrite what it sees in no graph
def native_convolution(
    x: Tensor, weight: Tensor, key_mask: Tensor | None = None, segment_ids: Tensor | None = None
) -> Tensor | None:
    """:class:`~paddle_rope.convolution.DepthwiseConvolution`; None where only plain forms compute.

    Args:
        x: ``[batch, seq, hidden]``.
        weight: ``[size, hidden]``, size odd.
        key_mask: bool ``[batch, seq]``, False at padding, which counts as 0.
        segment_ids: integer ``[batch, seq]`` of packed texts, which do not see each other.
    """
    if not computes(x, weight) or 0 in x.shape or not takes_convolution(x, weight, key_mask, segment_ids):
        return None
    masks = None if key_mask is None else dense(key_mask)
    segments = None if segment_ids is None else dense(segment_ids.astype("int64"))
    return _Convolution.apply(x, weight, masks, segments)


class _Convolution(Operator):
    @staticmethod
    def compute(ctx, x, weight, key_mask, segments):
        ctx.needs, ctx.of_call = [not tensor.stop_gradient for tensor in (x, weight)], (key_mask, segments)
        x, weight = dense(x), dense(weight)
        y = paddle.empty(x.shape, x.dtype)
        if any(ctx.needs):
            keep(ctx, x, weight, watched=(key_mask, segments))
        library().convolution_forward(*_arguments(x, weight, key_mask, segments), address(y))
        return y

    @staticmethod
    def differentiate(ctx, d_y):
        x, weight = ctx.saved_tensor()
        d_y = dense(d_y)
        d_x, d_weight = (paddle.empty_like(of) if needed else None for of, needed in zip((x, weight), ctx.needs))
        library().convolution_backward(*_arguments(x, weight, *ctx.of_call), *map(address, (d_y, d_x, d_weight)))
        return d_x, d_weight


def _arguments(x, weight, key_mask, segments):
    return *x.shape, weight.shape[0] // 2, *map(address, (key_mask, segments, x, weight))
