"""Linear attention with RoPE in the numerator, bidirectional or causal."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import paddle
from paddle import Tensor

from paddle_rope.attention.arguments import (
    as_mask,
    check_decay,
    check_layout,
    check_linear_options,
    check_segments,
    placed,
)
from paddle_rope.attention.chunked import chunked
from paddle_rope.attention.feature_maps import FeatureMapLike, as_feature_map, elu_plus_one
from paddle_rope.backend import as_dtype, as_factor, at_least_float32, scaled, without_amp
from paddle_rope.native.dispatch import native_form
from paddle_rope.native.operators import native_linear_attention
from paddle_rope.rotary import Rope, apply_rotary

# Lower bound of the denominator: unrotated, for a query without any real key or positive feature, far below the sums of
# small features (FAVOR+ of long keys); rotated, where it can cross 0, to keep the quotient finite in training.
MIN_DENOMINATOR = {"unrotated": 1e-30, "rotated": 1e-6}
# Second lower bound of the unrotated denominator, because a rotated numerator is not 0 where the features of query and
# keys do not overlap: this fraction of the denominator for features with the same sums, spread evenly.
MIN_OVERLAP = 0.01
_MIN_MEAN_SQUARE = 1e-12  # added to the mean square of an output without denominator
BOUNDS = MIN_DENOMINATOR["unrotated"], MIN_OVERLAP, _MIN_MEAN_SQUARE  # as native operators take them


@native_form(
    partial(native_linear_attention, bounds=BOUNDS),
    check_layout,
    feature_map=elu_plus_one,
    segment_ids=None,
    placement="qk",
)
def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rope: Rope | None = None,
    key_mask: Tensor | None = None,
    feature_map: FeatureMapLike = elu_plus_one,
    normalizer: str = "unrotated",
    segment_ids: Tensor | None = None,
    causal: bool = False,
    placement: str = "qk",
    decay: Sequence[float] | Tensor | None = None,
) -> Tensor:
    r"""o_i = sum_j (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j).

    The denominator is not rotated, so no term is negative; the rotated sum may be zero or negative (kexue.fm 8265,
    eq. 19; arXiv 2104.09864, eq. 19). Time and memory are linear in seq. Features, products and sums are float32 at
    least, even for half-precision inputs and under AMP.

    Args:
        q, k, v: ``[batch, seq, heads, head_dim]``; the last axis of v is ``value_dim``.
        rope: R, from :meth:`~paddle_rope.RotaryPositionEmbedding.cos_sin`; None for no position.
        key_mask: bool or 0/1 ``[batch, seq]``, False at padding, whose keys enter neither numerator nor denominator.
        feature_map: phi, not negative: a function of any shape or a
            :class:`~paddle_rope.attention.feature_maps.FeatureMap`.
        normalizer: ``"unrotated"``, as above; ``"rotated"``: R also in the denominator, which can vanish or turn
            negative and is then clipped at the bound (for comparison; correct for ``OnePlusCosine``); ``"none"``: o_i
            is the numerator over its root mean square, sqrt(mean over value_dim + 1e-12). Where the terms of the
            numerator cancel, this magnifies their rounding: two forms in float32 (native, plain, of other chunks) then
            differ by up to about 2^-22 |sum_j \|R_i phi(q_i)\| . \|R_j phi(k_j)\| \|v_j\|| over the root mean square.
        segment_ids: integer ``[batch, seq]`` for packed sequences: j runs over the tokens with i's id. Equal ids
            must be adjacent, which is checked on CPU.
        causal: j <= i only (arXiv 2006.16236, eq. 8-9).
        placement: what R rotates, some of the letters ``qkvo``: with v and o, o_i = R_i^T sum_j .. R_j v_j
            (kexue.fm 10862).
        decay: gamma, one for each head in (0, 1]: a list or a tensor ``[heads]``, which may be trained. The terms of
            both sums are multiplied by gamma^|i-j| (LION, arXiv 2502.16249; arXiv 2307.08621, eq. 5-7). Distance counts
            positions, padding included. None for 1.

    Returns:
        ``[batch, seq, heads, value_dim]`` in the dtype of ``q``. The denominator is bounded from below by
        ``MIN_DENOMINATOR``, so the output is 0 if every key is padding. An unrotated denominator of a rotated numerator
        is also at least ``MIN_OVERLAP``, 0.01, times sum_j |phi(q_i)| |phi(k_j)| / features, where \|.| is the sum of
        the features, so no output exceeds 100 * features times the largest value.

    Raises:
        ValueError: unknown or contradicting options, segments with gaps, ``decay`` out of range.

    >>> from paddle_rope import RotaryPositionEmbedding
    >>> q = k = v = paddle.ones([1, 5, 2, 4])
    >>> tuple(linear_attention(q, k, v, RotaryPositionEmbedding(4).cos_sin(5)).shape)
    (1, 5, 2, 4)
    """
    check_linear_options(feature_map, normalizer, placement, whole_sequence=not causal and segment_ids is None)
    check_segments(segment_ids, k.shape[0], k.shape[1], contiguous=True)
    sees = {"decay": check_decay(decay, q.shape[2]), "causal": causal, "segment_ids": segment_ids}
    return attend(q, k, v, rope, key_mask, feature_map, normalizer, placement, sees)[0]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rope: Rope | None,
    key_mask: Tensor | None,
    feature_map: FeatureMapLike,
    normalizer: str,
    placement: str,
    sees: dict[str, Any],
    key_values: Tensor | None = None,
    keys: Tensor | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The equation: the output, and the final states of numerator and denominator, from those before; ``sees`` are
    options of :func:`~paddle_rope.attention.chunked.chunked`."""
    phi, dtype = as_feature_map(feature_map), q.dtype
    key_mask = as_mask("key_mask", key_mask, k.shape[0], k.shape[1])
    of_q, of_k, of_v, of_o = placed(rope, placement)  # the rotation of each, or none
    with without_amp():  # AMP would compute the sums in half precision
        q, k, v = at_least_float32(q, k, v)
        phi_q, phi_k = phi.query(q), phi.key(k, key_mask)
        if key_mask is not None:
            phi_k = scaled(phi_k, as_factor(key_mask, 4, phi_k.dtype))

        rotated_q = phi.after_rotation(apply_rotary(phi_q, *of_q))
        rotated_k = phi.after_rotation(apply_rotary(phi_k, *of_k), key_mask)
        numerator, key_values = chunked(rotated_q, rotated_k, apply_rotary(v, *of_v), initial_state=key_values, **sees)
        if normalizer == "none":
            denominator = paddle.sqrt(numerator.square().mean(axis=-1, keepdim=True) + _MIN_MEAN_SQUARE)
            next_keys = None
        else:
            in_denominator = (rotated_q, rotated_k) if normalizer == "rotated" else (phi_q, phi_k)
            denominator, next_keys = chunked(*in_denominator, initial_state=keys, **sees)
            if normalizer == "unrotated" and (of_q or of_k):
                denominator = paddle.maximum(denominator, _least(phi_q, phi_k, keys, sees))
            else:
                denominator = paddle.clip(denominator, min=MIN_DENOMINATOR[normalizer])
        return as_dtype(apply_rotary(numerator / denominator, *of_o), dtype), key_values, next_keys


def _least(phi_q, phi_k, keys, sees):
    """The lower bounds of the unrotated denominator of a rotated numerator."""
    features = phi_q.shape[-1]
    keys = None if keys is None else keys.sum(axis=2, keepdim=True)
    q, k = (x.sum(axis=-1, keepdim=True) for x in (phi_q, phi_k))
    spread, _ = chunked(q, k, initial_state=keys, **sees)
    return paddle.scale(spread, MIN_OVERLAP / features, bias=MIN_DENOMINATOR["unrotated"])
