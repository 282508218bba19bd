"""Linear attention with RoPE in the numerator: bidirectional, causal, and continued token by token from a state."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.attention.arguments import by_head, check_placement, check_segments, rotate, rotate_back
from paddle_rope.attention.chunked import ChunkedSums, decay_of_side
from paddle_rope.attention.feature_maps import FeatureMapLike, as_feature_map, elu_plus_one
from paddle_rope.layers import scaled
from paddle_rope.native.attention import native_linear_attention
from paddle_rope.native.dispatch import native_form
from paddle_rope.options import NORMALIZERS, check_choice
from paddle_rope.precision import at_least_float32, without_amp
from paddle_rope.rotary import Rope

# Lower bound of the denominator. Unrotated, it is a sum of non-negative terms: the bound is for a query without any
# real key or positive feature, and far under what small features (FAVOR+ of long keys) sum to. Rotated, it passes
# through 0: the bound keeps the quotient finite in training.
MIN_DENOMINATOR = {"unrotated": 1e-30, "rotated": 1e-6}
# Second lower bound of the unrotated denominator under a rotated numerator, which is not 0 where the features of query
# and keys do not overlap: this part of the denominator of features of the same sums that are spread evenly.
MIN_OVERLAP = 0.01
# Added to the mean square of an output without denominator.
_MIN_MEAN_SQUARE = 1e-12


@native_form(native_linear_attention, feature_map=elu_plus_one, segment_ids=None, placement="qk", chunk_size=None)
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
    chunk_size: int | None = None,
) -> Tensor:
    r"""o_i = sum_j (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j).

    The denominator is not rotated: no term is negative, while the rotated sum may be zero or negative (kexue.fm 8265,
    eq. 19; arXiv 2104.09864, eq. 19). The sum over j is taken once for all i, or chunk by chunk: time and memory are
    linear in seq. Sums are kept in float32 at least, also for half-precision inputs and under AMP.

    Args:
        q, k: ``[batch, seq, heads, head_dim]``.
        v: ``[batch, seq, heads, value_dim]``.
        rope: R, from :meth:`~paddle_rope.RotaryPositionEmbedding.cos_sin`; None for no position.
        key_mask: bool ``[batch, seq]``, False at padding; padded keys enter neither numerator nor denominator.
        feature_map: phi, not negative: a function of any shape or a
            :class:`~paddle_rope.attention.feature_maps.FeatureMap`.
        normalizer: ``"unrotated"``, as above; ``"rotated"``: R in the denominator too, which can vanish or turn
            negative and is then cut at the bound (kept to show why not; right for ``OnePlusCosine``); ``"none"``: o_i
            is the numerator over its root mean square, sqrt(mean over value_dim + 1e-12).
        segment_ids: integer ``[batch, seq]`` for packed sequences: j runs over the tokens with the id of i. Equal ids
            stand side by side.
        causal: j <= i only (arXiv 2006.16236, eq. 8-9).
        placement: what R rotates, some of the letters ``qkvo``: with v and o, o_i = R_i^T sum_j .. R_j v_j
            (kexue.fm 10862).
        decay: gamma, one for each head in (0, 1]: a list or a tensor ``[heads]``, which may be trained. The terms of
            both sums are multiplied by gamma^|i-j| (LION, arXiv 2502.16249; arXiv 2307.08621, eq. 5-7). Distance counts
            positions, padding included. None for 1.
        chunk_size: of the sums that are taken by chunks, positive; None for one that is fast. The numbers do not depend
            on it except for rounding.

    Returns:
        ``[batch, seq, heads, value_dim]`` in the dtype of ``q``. The denominator is bounded from below by
        ``MIN_DENOMINATOR``, 1e-30 unrotated and 1e-6 rotated: where every key is padding the output is 0. Unrotated
        under a rotated numerator it is at least ``MIN_OVERLAP``, 0.01, times sum_j |phi(q_i)| |phi(k_j)| / features,
        \|.| being the sum of the features: so no output exceeds 100 features times the largest value.

    Raises:
        ValueError: an unknown normalizer or placement, options that contradict each other, segments with gaps; a static
            graph of unknown length with ``causal`` or ``segment_ids``; ``decay`` or ``chunk_size`` out of range.

    Example:
        >>> from paddle_rope import RotaryPositionEmbedding
        >>> q = k = v = paddle.ones([1, 5, 2, 4])
        >>> tuple(linear_attention(q, k, v, RotaryPositionEmbedding(4).cos_sin(5)).shape)
        (1, 5, 2, 4)
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"chunk_size must be positive, got {chunk_size}")
    sees_all = not causal and segment_ids is None
    check_linear_options(feature_map, normalizer, placement, whole_sequence=sees_all)
    if q.shape[1] < 0 and not sees_all:
        raise ValueError("linear attention that is causal or has segment_ids needs a known length in static graphs")
    check_segments(segment_ids, k.shape[0], k.shape[1], contiguous=True)
    decay = _checked_decay(decay, q.shape[2])
    with without_amp():  # which would take the sums in half precision
        terms = _terms(q, k, v, rope, key_mask, feature_map, normalizer, placement)
        sums = _whole_sums
        if decay is not None or not sees_all:
            sums = ChunkedSums(terms.numerator[2], decay, segment_ids, causal, chunk_size)
        output = _quotient(sums(*terms.numerator), [sums(*one) for one in terms.denominators], normalizer)
        return rotate_back(by_head(output), rope, placement).astype(q.dtype)


class LinearAttentionState(NamedTuple):
    """What causal linear attention remembers of the tokens before: its size does not depend on their number.

    Example:
        >>> token = paddle.ones([1, 1, 2, 4])
        >>> state, _ = linear_attention_step(None, token, token, token)
        >>> tuple(state.key_values.shape)
        (1, 2, 4, 4)
    """

    key_values: Tensor  # sum_j gamma^(i-j) R_j phi(k_j) v_j^T, [batch, heads, features, value_dim]
    keys: Tensor | None  # sum_j gamma^(i-j) phi(k_j), [batch, heads, features, 1]; None without denominator
    length: int  # number of tokens so far, the position of the next


@paddle.jit.not_to_static  # traced as it is: paddle 3.x cannot rewrite a default that is a function
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
    Time and memory do not depend on the tokens before.

    Args:
        state: a :class:`LinearAttentionState`, float32 at least; None before the first token. It is not changed.
        q, k, v: ``[batch, new, heads, head_dim]`` or, of v, ``value_dim``.
        rope: R at the positions of the new tokens, ``rotary.cos_sin(new, offset=state.length)``.
        key_mask, feature_map, normalizer, decay, placement: as :func:`linear_attention`, of the new tokens.

    Returns:
        The new state and y ``[batch, new, heads, value_dim]`` in the dtype of ``q``.

    Raises:
        ValueError: as :func:`linear_attention`.

    Example:
        >>> state, token = None, paddle.ones([1, 1, 2, 4])
        >>> for _ in range(3):
        ...     state, y = linear_attention_step(state, token, token, token)
        >>> state.length, tuple(y.shape)
        (3, (1, 1, 2, 4))
    """
    check_linear_options(feature_map, normalizer, placement)
    seq, rates = q.shape[1], _checked_decay(decay, q.shape[2])
    with without_amp():
        terms = _terms(q, k, v, rope, key_mask, feature_map, normalizer, placement)
        sums = ChunkedSums(terms.numerator[2], rates, causal=True)
        numerator, denominators = sums(*terms.numerator), [sums(*one) for one in terms.denominators]
        gamma = None if rates is None else rates.astype(numerator.dtype).reshape([1, -1, 1, 1])
        index = paddle.arange(seq).astype(numerator.dtype).unsqueeze(1)
        from_state, to_state, keep = decay_of_side(gamma, index + 1, seq - 1 - index, seq)
        if state is not None:  # what the tokens before add
            numerator = numerator + _times(paddle.matmul(terms.numerator[0], state.key_values), from_state)
            known = (state.keys, None if state.keys is None else state.keys.sum(axis=2, keepdim=True))
            denominators = [
                sum_ + _times(paddle.matmul(term[0], keys), from_state)
                for sum_, term, keys in zip(denominators, terms.denominators, known)
            ]
        _, turned_k, values = terms.numerator
        key_values = paddle.matmul(_times(turned_k, to_state), values, transpose_x=True)
        keys = _times(terms.denominators[0][1], to_state).sum(axis=2).unsqueeze(-1) if denominators else None
        if state is not None:
            key_values = key_values + _times(state.key_values, keep)
            keys = None if keys is None else keys + _times(state.keys, keep)
        output = rotate_back(by_head(_quotient(numerator, denominators, normalizer)), rope, placement).astype(q.dtype)
    return LinearAttentionState(key_values, keys, (state.length if state else 0) + seq), output


def check_linear_options(
    feature_map: FeatureMapLike,
    normalizer: str,
    placement: str,
    whole_sequence: bool = False,
) -> None:
    """Raise ValueError for options that contradict each other.

    Args:
        whole_sequence: a query sees all keys of its row.
        feature_map, normalizer, placement: as of the attention.
    """
    check_placement(placement)
    check_choice("normalizer", normalizer, NORMALIZERS)
    phi = as_feature_map(feature_map)
    name = type(phi).__name__
    if normalizer == "unrotated" and phi.rotates_denominator:
        raise ValueError(f"{name} is rotated in the denominator too: give normalizer='rotated'")
    if not whole_sequence and phi.over_sequence:
        raise ValueError(f"{name} looks at the whole sequence: it is neither causal nor for packed ones; take exp")


class _Terms(NamedTuple):
    """(q, k, v) of the sums sum_j (q_i . k_j) v_j, each ``[batch, heads, seq, size]``, 0 at masked keys."""

    numerator: tuple[Tensor, Tensor, Tensor]
    denominators: list[tuple[Tensor, Tensor, Tensor]]  # the largest sum divides; none without denominator


def _terms(q, k, v, rope, key_mask, feature_map, normalizer, placement):
    """The features of q and k; RoPE rotates the ones in the numerator."""
    q, k, v = at_least_float32(q, k, v)
    phi = as_feature_map(feature_map)
    phi_q, phi_k = phi.query(q), phi.key(k, key_mask)
    if key_mask is not None:
        phi_k = scaled(phi_k, key_mask.unsqueeze([2, 3]))
    rotated = "" if rope is None else placement
    rotated_q = rotate(phi_q, rope) if "q" in rotated else phi_q
    rotated_k = rotate(phi_k, rope) if "k" in rotated else phi_k
    rotated_v = rotate(v, rope) if "v" in rotated else v
    numerator = (
        by_head(phi.after_rotation(rotated_q)),
        by_head(phi.after_rotation(rotated_k, key_mask)),
        by_head(rotated_v),
    )
    ones, denominators = paddle.ones_like(numerator[2][..., :1]), []
    if normalizer == "rotated":
        denominators.append((*numerator[:2], ones))
    if normalizer == "unrotated":
        phi_q, phi_k = by_head(phi_q), by_head(phi_k)
        denominators.append((phi_q, phi_k, ones))
        if "q" in rotated or "k" in rotated:
            spread_q = phi_q.mean(axis=-1, keepdim=True) * MIN_OVERLAP
            denominators.append((spread_q, phi_k.sum(axis=-1, keepdim=True), ones))
    return _Terms(numerator, denominators)


def _whole_sums(q, k, v):
    """sum_j (q_i . k_j) v_j over all j: the sum of k_j v_j^T is taken once."""
    return paddle.matmul(q, paddle.matmul(k, v, transpose_x=True))


def _quotient(numerator, denominators, normalizer):
    """numerator / max(denominators, ``MIN_DENOMINATOR``), or over its root mean square where there are none."""
    if not denominators:
        return numerator / paddle.sqrt(numerator.square().mean(axis=-1, keepdim=True) + _MIN_MEAN_SQUARE)
    return numerator / paddle.clip(reduce(paddle.maximum, denominators), min=MIN_DENOMINATOR[normalizer])


def _times(x, factor):
    """x times the factor; None for 1."""
    return x if factor is None else x * factor


def _checked_decay(decay, heads):
    """Tensor ``[heads]`` in (0, 1], or None."""
    if decay is None:
        return None
    is_list = isinstance(decay, (list, tuple, float))
    if not is_list and not paddle.in_dynamic_mode():
        return decay  # a variable, whose numbers are not known
    given = np.asarray(decay if is_list else decay.numpy())
    if given.shape != (heads,) or not ((given > 0) & (given <= 1)).all():
        raise ValueError(f"decay must be {heads} numbers in (0, 1], one for each head, got {given.tolist()}")
    return paddle.to_tensor(given, dtype="float64") if is_list else decay
