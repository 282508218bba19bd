"""Which calls the operators take. All others are left to the plain forms, which broadcast or raise.

The operators read memory by its address, so every shape, dtype and range on which an address depends is checked here.
"""

from collections.abc import Sequence
from typing import Any

import paddle
from paddle import Tensor


def takes_linear(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None]) -> bool:
    """x ``[..., in_features]``, each weight ``[in_features, out_features]``, each bias ``[out_features]`` or None."""
    return x.ndim > 0 and all(
        weight.ndim == 2 and weight.shape[0] == x.shape[-1] and (bias is None or bias.shape == weight.shape[1:])
        for weight, bias in zip(weights, biases)
    )


def takes_norm(residual: Tensor | None, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> bool:
    """The residual has the shape of x ``[..., width]``; weight and bias are ``[width]``, or both are None."""
    if residual is not None and residual.shape != x.shape:
        return False
    if weight is None or bias is None:
        return weight is bias
    return weight.shape == bias.shape == x.shape[-1:]


def takes_convolution(x: Tensor, weight: Tensor, key_mask: Tensor | None, segment_ids: Tensor | None) -> bool:
    """x ``[batch, seq, hidden]``, weight ``[size, hidden]`` of odd size."""
    if x.ndim != 3 or weight.ndim != 2 or weight.shape[0] % 2 == 0 or weight.shape[1] != x.shape[2]:
        return False
    return is_mask(key_mask, x) and is_segments(segment_ids, x)


def takes_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    num_heads: int,
    key_mask: Tensor | None,
    segment_ids: Tensor | None = None,
    decay: Any = None,
) -> bool:
    """q, k, v ``[batch, seq, num_heads * head_dim]``; decay: a list of one number in (0, 1] for each head, or None."""
    if q.ndim != 3 or not q.shape == k.shape == v.shape or num_heads < 1 or q.shape[2] % num_heads:
        return False
    if decay is not None:
        is_list = isinstance(decay, (list, tuple)) and len(decay) == num_heads
        if not is_list or not all(0 < gamma <= 1 for gamma in decay):
            return False
    return is_mask(key_mask, q) and is_segments(segment_ids, q)


def takes_spans(qk: Tensor, type_scores: Tensor, rows: Any, token_mask: Tensor | None) -> bool:
    """qk ``[batch, seq, 2 * head_size]``, type_scores ``[batch, seq, 2 * types]``, rows up to batch * types,
    token_mask ``[batch, seq]`` of any dtype."""
    if qk.ndim != 3 or type_scores.ndim != 3 or qk.shape[:2] != type_scores.shape[:2]:
        return False
    if qk.shape[2] % 2 or type_scores.shape[2] % 2 or (token_mask is not None and token_mask.shape != qk.shape[:2]):
        return False
    return not len(rows) or rows[-1] < qk.shape[0] * (type_scores.shape[2] // 2)


def takes_tables(cosine: Tensor, sine: Tensor, x: Tensor, head_dim: int) -> bool:
    """``[seq, head_dim / 2]``, for each text ``[batch or 1, seq, head_dim / 2]``, of x ``[batch, seq, ...]``."""
    if cosine.shape != sine.shape or cosine.shape[-2] != x.shape[1] or 2 * cosine.shape[-1] != head_dim:
        return False
    return cosine.ndim == 2 or (cosine.ndim == 3 and cosine.shape[0] in (1, x.shape[0]))


def is_mask(key_mask: Tensor | None, x: Tensor) -> bool:
    """None, or bool ``[batch, seq]`` of x ``[batch, seq, ...]``."""
    return key_mask is None or (key_mask.shape == x.shape[:2] and key_mask.dtype == paddle.bool)


def is_segments(segment_ids: Tensor | None, x: Tensor) -> bool:
    """None, or int32 or int64 ``[batch, seq]`` of x ``[batch, seq, ...]``."""
    return segment_ids is None or (
        segment_ids.shape == x.shape[:2] and segment_ids.dtype in (paddle.int32, paddle.int64)
    )
