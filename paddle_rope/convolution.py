"""Short depthwise convolutions over the tokens of a text."""

import paddle
from paddle import Tensor, nn

from paddle_rope.layers import outer
from paddle_rope.native.convolution import native_convolution
from paddle_rope.options import TRUTH


class DepthwiseConvolution(nn.Layer):
    r"""y_i = sum_{|t| <= radius} w_t * x_{i + t}, feature by feature, size = 2 radius + 1 (MILA, arXiv 2405.16605).

    The sum leaves out what is before the first and after the last token, at padding, or of another packed text.
    Without training y = ``center`` x: the other weights begin at 0.

    Without native operators it is a sum of shifted products. On CPU the mask and the weight of a shift are one outer
    product, whose gradient is a matrix product. Paddle's convolution by groups takes longer on short texts, and knows
    no segments.

    Args:
        hidden_size: number of features.
        size: of the kernel, odd.
        center: the first value of w_0: 0 suits x + y, 1 suits y in the place of x.

    Raises:
        ValueError: the size is even or not positive.
    """

    def __init__(self, hidden_size: int, size: int = 3, center: float = 0.0) -> None:
        super().__init__()
        if size < 1 or size % 2 == 0:
            raise ValueError(f"size must be odd and positive, got {size}")
        self.radius = size // 2
        self.weight = self.create_parameter([size, hidden_size], default_initializer=nn.initializer.Constant(0.0))
        if center:
            at_center = paddle.zeros([size, hidden_size], dtype=self.weight.dtype)
            at_center[self.radius] = center
            self.weight.set_value(at_center)

    def forward(self, x: Tensor, key_mask: Tensor | None = None, segment_ids: Tensor | None = None) -> Tensor:
        """Convolve the tokens of each text.

        Args:
            x: ``[batch, seq, hidden]``.
            key_mask: bool ``[batch, seq]``, False at padding, which counts as 0.
            segment_ids: integer ``[batch, seq]`` of packed texts, which do not see each other.

        Returns:
            ``[batch, seq, hidden]``; at padding it means nothing.
        """
        y = native_convolution(x, self.weight, key_mask, segment_ids)
        if y is not None:
            return y
        index = paddle.arange(paddle.shape(x)[1]).unsqueeze(0)  # [1, seq]
        real = paddle.ones_like(x[:, :, 0]) if key_mask is None else key_mask.astype(x.dtype)
        real.stop_gradient = True
        weights = paddle.unbind(self.weight.astype(x.dtype), axis=0)
        for weight, lag in zip(weights, range(-self.radius, self.radius + 1)):
            visible = paddle.roll(real, -lag, axis=1) if lag else real  # [batch, seq]: whether i sees i + lag
            if lag:
                inside = paddle.logical_and(index + lag >= 0, index + lag < paddle.shape(x)[1])
                visible = visible * inside.astype(x.dtype)
                if segment_ids is not None:
                    same = paddle.roll(segment_ids, -lag, axis=1) == segment_ids
                    visible = visible * same.astype(x.dtype)
            product = (paddle.roll(x, -lag, axis=1) if lag else x) * outer(visible, weight)
            y = product if y is None else y + product
        return y


def check_convolutions(convolutions: bool, causal: bool) -> None:
    """Raise ValueError if there are convolutions in a causal model, or if ``convolutions`` is not true or false."""
    TRUTH.check("convolutions", convolutions)
    if convolutions and causal:
        raise ValueError("convolutions see the token after as well as the one before: they are not for causal models")
