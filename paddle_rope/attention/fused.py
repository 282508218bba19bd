"""Softmax attention by the kernels of a GPU, which never store the weights ``[queries, seq]``."""

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_rope.layers import Dropout, scaled
from paddle_rope.precision import without_amp

LARGEST_HEAD, HEAD_STEP = 256, 8  # sizes of heads that flash attention takes
_OLDEST_GPU = 80  # compute capability, ten times


def masked_score(dtype: paddle.dtype) -> float:
    """The score of masked keys: finite in ``dtype``, and below any real score, so that the softmax leaves it no weight.

    The lowest number of float16; in wider types less than the lowest, since kernels multiply scores by log2(e).
    """
    return -65504.0 if dtype == paddle.float16 else -1e30


def fits_fused_kernels(q: Tensor, k: Tensor, v: Tensor, dropout: object) -> bool:
    """Whether flash attention computes these: float16 or bfloat16 ``[batch, heads, seq, head_dim]`` of one head_dim, on
    a GPU of compute capability 8.0 or newer (Ampere), with dropout of our own, and not in a static graph."""
    # not q.place, which the tracing of to_static in paddle 3.x cannot read
    if not paddle.in_dynamic_mode() or not paddle.get_device().startswith("gpu"):
        return False
    if not fits_fused_shapes(q, k, v, dropout):
        return False
    major, minor = paddle.device.cuda.get_device_capability()
    return 10 * major + minor >= _OLDEST_GPU and q.dtype in (paddle.float16, paddle.bfloat16)


def fits_fused_shapes(q: Tensor, k: Tensor, v: Tensor, dropout: object) -> bool:
    """What :func:`fits_fused_kernels` asks, whatever the device and the dtype."""
    head_dim = q.shape[-1]
    is_known = dropout is None or isinstance(dropout, Dropout)
    fits = head_dim <= LARGEST_HEAD and head_dim % HEAD_STEP == 0
    return is_known and fits and q.ndim == 4 and head_dim == k.shape[-1] == v.shape[-1]


def fused_weighted_values(
    q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, some_see_none: bool, dropout: object = None
) -> Tensor:
    """sum_j softmax_j(q_i . k_j / sqrt(head_dim)) v_j over the visible j: what
    :func:`~paddle_rope.attention.softmax.weighted_values` computes, by
    ``paddle.nn.functional.scaled_dot_product_attention``.

    The mask is a finite number added to the scores, so that a row without visible keys is no NaN. Dropout draws its
    mask within the kernel, on the device.

    Args:
        q: ``[batch, heads, queries, head_dim]``; on a GPU what :func:`fits_fused_kernels` admits, on CPU float32 too.
        k: ``[batch, heads, seq, head_dim]``.
        v: ``[batch, heads, seq, head_dim]``.
        visible: bool that broadcasts to ``[batch, heads, queries, seq]``; None for all.
        some_see_none: whether queries without visible keys count: they get 0.
        dropout: a :class:`~paddle_rope.layers.Dropout`, of which the probability is taken, and whether it trains; None
            for none.

    Returns:
        ``[batch, heads, queries, head_dim]``.
    """
    added = None
    if visible is not None:
        shown = visible.expand([q.shape[0], 1, q.shape[2], k.shape[2]])
        hidden = paddle.full_like(shown, masked_score(q.dtype), dtype=q.dtype)
        added = paddle.where(shown, paddle.zeros_like(hidden), hidden)
    p = dropout.p if isinstance(dropout, Dropout) and dropout.training else 0.0
    by_token = [x.transpose([0, 2, 1, 3]) for x in (q, k, v)]  # [batch, seq, heads, head_dim]
    with without_amp():  # which would cast the mask to another dtype than q
        values = F.scaled_dot_product_attention(*by_token, attn_mask=added, dropout_p=p, training=p > 0)
    values = values.transpose([0, 2, 1, 3])
    if some_see_none and visible is not None:
        values = scaled(values, visible.astype("float32").max(axis=-1, keepdim=True)).astype(values.dtype)
    return values
