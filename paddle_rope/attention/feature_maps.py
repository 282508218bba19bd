"""Feature maps phi that turn softmax attention into linear attention: sim(q, k) = phi(q) . phi(k)."""

import paddle
import paddle.nn.functional as F

# At its bound the slope of clip is 1 in paddle 3.x and 0 in 2.6.2: keep the bound off 0.
_JUST_ABOVE_ZERO = 1e-30


def elu_plus_one(x):
    """phi(x) = elu(x) + 1: x + 1 for x >= 0, exp(x) below (Katharopoulos et al. 2020, arXiv 2006.16236, eq. 7).

    Written as relu(x) + exp(min(x, 0)), which does not cancel: elu(x) + 1 is exactly 0 in bfloat16 for x = -8.
    The slope at 0 is 1.

    Args:
        x: any shape, any floating dtype.

    Returns:
        Tensor of the same shape and dtype, positive.
    """
    return F.relu(x) + paddle.exp(paddle.clip(x, max=_JUST_ABOVE_ZERO))
