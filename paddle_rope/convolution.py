"""Short depthwise convolutions over the tokens of a text."""

import paddle
from paddle import Tensor, nn

from paddle_rope.layers import outer
from paddle_rope.native.dispatch import native_form
from paddle_rope.native.layers import native_convolution


@native_form(native_convolution)
def depthwise_convolution(
    x: Tensor, weight: Tensor, key_mask: Tensor | None = None, segment_ids: Tensor | None = None, causal: bool = False
) -> Tensor:
    r"""y_i = sum_{|t| <= radius} w_t * x_{i + t}, feature by feature, size = 2 radius + 1 (MILA, arXiv 2405.16605).

    With ``causal`` -size < t <= 0. The sum leaves out what is before the first and after the last token, at padding, or
    of another packed text. ``x`` is ``[batch, seq, hidden]``, ``weight`` ``[size, hidden]``, the first row that of the
    smallest t; ``key_mask`` and ``segment_ids`` are as of the attention.

    A sum of shifted products: on CPU the mask and the weight of a shift are one outer product, whose gradient is a
    matrix product. Paddle's convolution by groups takes longer on short texts, and knows no segments.

    >>> x = paddle.to_tensor([[[1.0], [2.0], [4.0]]])
    >>> depthwise_convolution(x, paddle.ones([3, 1])).flatten().tolist()
    [3.0, 7.0, 6.0]
    """
    seq = paddle.shape(x)[1]
    index = paddle.arange(seq).unsqueeze(0)  # [1, seq]
    real = paddle.ones_like(x[:, :, 0]) if key_mask is None else key_mask.astype(x.dtype)
    real.stop_gradient = True
    y = None
    for lag, row in enumerate(paddle.unbind(weight.astype(x.dtype), axis=0), start=-_before(weight.shape[0], causal)):
        visible = paddle.roll(real, -lag, axis=1) if lag else real  # [batch, seq]: whether i sees i + lag
        if lag:
            inside = paddle.logical_and(index + lag >= 0, index + lag < seq)
            visible = visible * inside.astype(x.dtype)
            if segment_ids is not None:
                same = paddle.roll(segment_ids, -lag, axis=1) == segment_ids
                visible = visible * same.astype(x.dtype)
        product = (paddle.roll(x, -lag, axis=1) if lag else x) * outer(visible, row)
        y = product if y is None else y + product
    return y


class DepthwiseConvolution(nn.Layer):
    r"""A :func:`depthwise_convolution` of ``size`` (odd unless ``causal``) with a trained weight. Before training
    y = ``center`` x: 0 suits x + y, 1 suits y in the place of x.

    >>> DepthwiseConvolution(hidden_size=1, center=1.0)(paddle.to_tensor([[[1.0], [2.0], [4.0]]])).flatten().tolist()
    [1.0, 2.0, 4.0]
    """

    def __init__(self, hidden_size: int, size: int = 3, center: float = 0.0, causal: bool = False) -> None:
        super().__init__()
        if size < 1 or (size % 2 == 0 and not causal):
            raise ValueError(f"size must be odd and positive, got {size}")
        self.causal = causal
        self.weight = self.create_parameter([size, hidden_size], default_initializer=nn.initializer.Constant(0.0))
        if center:
            at_center = paddle.zeros([size, hidden_size], dtype=self.weight.dtype)
            at_center[_before(size, causal)] = center
            self.weight.set_value(at_center)

    def forward(self, x: Tensor, key_mask: Tensor | None = None, segment_ids: Tensor | None = None) -> Tensor:
        """As :func:`depthwise_convolution`."""
        return depthwise_convolution(x, self.weight, key_mask, segment_ids, self.causal)

    def forward_with_cache(
        self, x: Tensor, cache: Tensor | None = None, key_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Convolve the tokens ``[batch, new, hidden]`` that follow those of ``cache``, None at the start; for causal
        ones.

        Returns:
            ``[batch, new, hidden]``, and a new cache: the last ``size`` - 1 tokens seen, 0 at padding.
        """
        before = self.weight.shape[0] - 1
        if key_mask is not None:
            x = x * key_mask.unsqueeze(-1).astype(x.dtype)
        if cache is None:
            cache = paddle.zeros([x.shape[0], before, x.shape[2]], x.dtype)
        seen = paddle.concat([cache, x], axis=1)
        return self(seen)[:, before:], seen[:, seen.shape[1] - before :]


def _before(size, causal):
    """How many tokens before its own a kernel sees."""
    return size - 1 if causal else size // 2
