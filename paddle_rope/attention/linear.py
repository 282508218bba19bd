"""Linear attention with RoPE in the numerator: bidirectional, causal, and continued token by token from a state."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

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

# Lower bound of the denominator. Unrotated, it is a sum of non-negative terms: the bound is for a query without any
# real key or positive feature, and far below the sums of small features (FAVOR+ of long keys). Rotated, it can cross 0:
# the bound keeps the quotient finite in training.
MIN_DENOMINATOR = {"unrotated": 1e-30, "rotated": 1e-6}
# Second lower bound of the unrotated denominator, because a rotated numerator is not 0 where the features of query and
# keys do not overlap: this fraction of the denominator for features with the same sums, spread evenly.
MIN_OVERLAP = 0.01
_MIN_MEAN_SQUARE = 1e-12  # added to the mean square of an output without denominator


_native = partial(native_linear_attention, bounds=(MIN_DENOMINATOR["unrotated"], MIN_OVERLAP, _MIN_MEAN_SQUARE))


@native_form(_native, check_layout, feature_map=elu_plus_one, segment_ids=None, placement="qk")
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
    eq. 19; arXiv 2104.09864, eq. 19). The sum over j is taken once for all i, or chunk by chunk, so time and memory are
    linear in seq. Features, products and sums are float32 at least, even for half-precision inputs and under AMP.

    Args:
        q, k: ``[batch, seq, heads, head_dim]``.
        v: ``[batch, seq, heads, value_dim]``.
        rope: R, from :meth:`~paddle_rope.RotaryPositionEmbedding.cos_sin`; None for no position.
        key_mask: bool or 0/1 ``[batch, seq]``, False at padding; padded keys enter neither numerator nor denominator.
        feature_map: phi, not negative: a function of any shape or a
            :class:`~paddle_rope.attention.feature_maps.FeatureMap`.
        normalizer: ``"unrotated"``, as above; ``"rotated"``: R also in the denominator, which can vanish or turn
            negative and is then clipped at the bound (for comparison; correct for ``OnePlusCosine``); ``"none"``: o_i
            is the numerator over its root mean square, sqrt(mean over value_dim + 1e-12).
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
        ValueError: an unknown normalizer or placement, options that contradict each other, segments with gaps; a static
            graph of unknown length with ``causal`` or ``segment_ids``; ``decay`` out of range.

    >>> from paddle_rope import RotaryPositionEmbedding
    >>> q = k = v = paddle.ones([1, 5, 2, 4])
    >>> tuple(linear_attention(q, k, v, RotaryPositionEmbedding(4).cos_sin(5)).shape)
    (1, 5, 2, 4)
    """
    check_linear_options(feature_map, normalizer, placement, whole_sequence=not causal and segment_ids is None)
    check_segments(segment_ids, k.shape[0], k.shape[1], contiguous=True)
    sees = {"decay": check_decay(decay, q.shape[2]), "causal": causal, "segment_ids": segment_ids}
    return _attend(q, k, v, rope, key_mask, feature_map, normalizer, placement, sees)[0]


def _attend(q, k, v, rope, key_mask, feature_map, normalizer, placement, sees, key_values=None, keys=None):
    """The equation: output, and the final states of numerator and denominator."""
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
            output = numerator / paddle.sqrt(numerator.square().mean(axis=-1, keepdim=True) + _MIN_MEAN_SQUARE)
        else:
            q, k = (rotated_q, rotated_k) if normalizer == "rotated" else (phi_q, phi_k)
            denominator, next_keys = chunked(q, k, initial_state=keys, **sees)
            least = MIN_DENOMINATOR[normalizer]
            if normalizer == "unrotated" and (of_q or of_k):
                q, k = (x.sum(axis=-1, keepdim=True) for x in (phi_q, phi_k))
                keys = None if keys is None else keys.sum(axis=2, keepdim=True)
                spread = chunked(q, k, initial_state=keys, **sees)[0]
                least = paddle.scale(spread, MIN_OVERLAP / phi_q.shape[-1], bias=least)
            output, keys = numerator / _at_least(denominator, least), next_keys
        return as_dtype(apply_rotary(output, *of_o), dtype), key_values, keys


def _at_least(x, least):
    return paddle.clip(x, min=least) if isinstance(least, float) else paddle.maximum(x, least)


class LinearAttentionState(NamedTuple):
    """The state of causal linear attention after the previous tokens; its size does not depend on their number.

    >>> LinearAttentionState._fields
    ('key_values', 'keys', 'length')
    """

    key_values: Tensor  # sum_j gamma^(i-j) R_j phi(k_j) v_j^T, [batch, heads, features, value_dim]
    keys: Tensor | None  # sum_j gamma^(i-j) phi(k_j), [batch, heads, features, 1]; None without denominator
    length: int  # number of tokens so far, the position of the next


@paddle.jit.not_to_static  # traced without rewriting: paddle 3.x cannot rewrite a default that is a function
def linear_attention_step(
    state: LinearAttentionState | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rope: Rope | None = None,
    key_mask: Tensor | None = None,
    feature_map: FeatureMapLike = elu_plus_one,
    normalizer: str = "unrotated",
    decay: Sequence[float] | Tensor | None = None,
    placement: str = "qk",
) -> tuple[LinearAttentionState, Tensor]:
    r"""The next token, or tokens, of causal :func:`linear_attention`: ``state, y = linear_attention_step(state, ...)``.

    S_i = gamma S_{i-1} + R_i phi(k_i) v_i^T, z_i = gamma z_{i-1} + phi(k_i),
    o_i = (R_i phi(q_i))^T S_i / phi(q_i)^T z_i (arXiv 2006.16236, eq. 18-20, there without R and gamma).
    Time and memory do not depend on the number of previous tokens.

    Args:
        state: a :class:`LinearAttentionState`, float32 at least; None before the first token. It is not changed.
        q, k, v: ``[batch, new, heads, head_dim]``; the last axis of v is ``value_dim``.
        rope: R at the positions of the new tokens, ``rotary.cos_sin(new, offset=state.length)``.

    >>> state, token = None, paddle.ones([1, 1, 2, 4])
    >>> for _ in range(3):
    ...     state, y = linear_attention_step(state, token, token, token)
    >>> state.length, tuple(y.shape)
    (3, (1, 1, 2, 4))
    """
    check_linear_options(feature_map, normalizer, placement)
    sees = {"decay": check_decay(decay, q.shape[2]), "causal": True, "output_final_state": True}
    key_values, keys, length = state or (None, None, 0)
    known = key_values, keys
    output, key_values, keys = _attend(q, k, v, rope, key_mask, feature_map, normalizer, placement, sees, *known)
    return LinearAttentionState(key_values, keys, length + q.shape[1]), output
