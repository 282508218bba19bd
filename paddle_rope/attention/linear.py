"""Linear attention with RoPE in the numerator: bidirectional, causal by chunks, and one token at a time.

All forms begin with :func:`_prepare` and end with :func:`_finish`; in between each takes its own sums.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.attention.decay import decay_of_state, decay_weights
from paddle_rope.attention.feature_maps import FeatureMapLike, as_feature_map, elu_plus_one
from paddle_rope.attention.placement import Rotation, check_placement, rotate_at
from paddle_rope.attention.sums import causal_sums, check_segments, segment_sums, segment_weights
from paddle_rope.layers import scaled
from paddle_rope.options import NORMALIZERS, check_choice
from paddle_rope.precision import at_least_float32, without_amp

# Lower bound of the denominator. Unrotated, it is a sum of non-negative terms: the bound is for a query without any
# real key or positive feature, and far under what small features (FAVOR+ of long keys) sum to. Rotated, it passes
# through 0: the bound keeps the quotient finite in training.
MIN_DENOMINATOR = {"unrotated": 1e-30, "rotated": 1e-6}
# Second lower bound of the unrotated denominator under a rotated numerator, which is not 0 where the features of query
# and keys do not overlap: this part of the denominator of features of the same sums that are spread evenly.
MIN_OVERLAP = 0.01
# Added to the mean square of an output without denominator.
_MIN_MEAN_SQUARE = 1e-12


class LinearAttentionState(NamedTuple):
    """What causal linear attention remembers of the tokens before: its size does not depend on their number."""

    key_values: Tensor  # sum_j gamma^(i-j) R_j phi(k_j) v_j^T, [batch, heads, features, value_dim]
    keys: Tensor | None  # sum_j gamma^(i-j) phi(k_j), [batch, heads, features, 1]; None without denominator
    length: int  # number of tokens so far, the position of the next


@paddle.jit.not_to_static  # traced as it is: paddle 3.x cannot rewrite a default that is a function
def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rotate: Rotation | None = None,
    key_mask: Tensor | None = None,
    feature_map: FeatureMapLike = elu_plus_one,
    normalizer: str = "unrotated",
    segment_ids: Tensor | None = None,
    placement: str = "qk",
    decay: Sequence[float] | Tensor | None = None,
    chunk_size: int | None = None,
) -> Tensor:
    r"""o_i = sum_j (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j), bidirectional.

    The denominator is not rotated: no term is negative, while the rotated sum may be zero or negative (kexue.fm 8265,
    eq. 19; arXiv 2104.09864, eq. 19). The sum over j is taken once for all i: time and memory are linear in seq. Sums
    are kept in float32 at least, also for half-precision inputs and under AMP.

    Args:
        q, k: ``[batch, heads, seq, head_dim]``.
        v: ``[batch, heads, seq, value_dim]``.
        rotate: R, e.g. a :class:`~paddle_rope.RotaryPositionEmbedding`; None for no position.
        key_mask: bool ``[batch, seq]``, False at padding; padded keys enter neither numerator nor denominator.
        feature_map: phi, not negative: a function of any shape or a
            :class:`~paddle_rope.attention.feature_maps.FeatureMap`.
        normalizer: ``"unrotated"``, as above; ``"rotated"``: R in the denominator too, which can vanish or turn
            negative and is then cut at the bound (kept to show why not; right for ``OnePlusCosine``); ``"none"``: o_i
            is the numerator over its root mean square, sqrt(mean over value_dim + 1e-12).
        segment_ids: integer ``[batch, seq]`` for packed sequences: j runs over the tokens with the id of i. Equal ids
            stand side by side. Still linear in seq, whatever the number of segments.
        placement: what R rotates, some of the letters ``qkvo``: with v and o, o_i = R_i^T sum_j .. R_j v_j
            (kexue.fm 10862; see :mod:`~paddle_rope.attention.placement`).
        decay: gamma, one for each head in (0, 1]: a list or a tensor ``[heads]``, which may be trained. The terms of
            both sums are multiplied by gamma^|i-j| (LION, arXiv 2502.16249): by chunks, linear in seq. Distance counts
            positions, padding included. None for 1.
        chunk_size: of the sums with decay, positive; None for one that is fast. The numbers do not depend on it except
            for rounding.

    Returns:
        ``[batch, heads, seq, value_dim]`` in the dtype of ``q``. The denominator is bounded from below by
        ``MIN_DENOMINATOR``, 1e-30 unrotated and 1e-6 rotated: where every key is padding the output is 0. Unrotated
        under a rotated numerator it is at least ``MIN_OVERLAP``, 0.01, times sum_j |phi(q_i)| |phi(k_j)| / features,
        \|.| being the sum of the features: so no output exceeds 100 features times the largest value.

    Raises:
        ValueError: an unknown normalizer or placement, options that contradict each other, segments with gaps;
            ``segment_ids`` in a static graph of unknown length; ``decay`` or ``chunk_size`` out of range.
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"chunk_size must be positive, got {chunk_size}")
    packed = segment_ids is not None
    check_linear_options(feature_map, normalizer, placement, whole_sequence=not packed)
    decay = _checked_decay(decay, q)
    with without_amp():  # which would take the sums in half precision
        (phi_q, phi_k), below, values = _prepare(
            q, k, v, rotate, key_mask, feature_map, normalizer, segment_ids, placement, whole_sequence=not packed
        )
        if decay is not None:
            weights = decay_weights(decay, values, segment_ids, chunk_size)
            numerator = weights.sums(phi_q, phi_k, values)
            denominators = [weights.sums(a, b, paddle.ones_like(values[..., :1])) for a, b in below]
        elif not packed:
            key_values = paddle.matmul(phi_k, values, transpose_x=True)  # [batch, heads, features, value_dim]
            numerator = paddle.matmul(phi_q, key_values)
            denominators = [paddle.matmul(a, b.sum(axis=2, keepdim=True), transpose_y=True) for a, b in below]
        else:
            numerator = segment_sums(phi_q, phi_k, values, segment_ids)
            denominators = [segment_weights(a, b, segment_ids) for a, b in below]
        return _finish(numerator, denominators, normalizer, rotate, placement, q.dtype)


@paddle.jit.not_to_static  # as linear_attention
def causal_linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rotate: Rotation | None = None,
    key_mask: Tensor | None = None,
    feature_map: FeatureMapLike = elu_plus_one,
    normalizer: str = "unrotated",
    decay: Sequence[float] | Tensor | None = None,
    segment_ids: Tensor | None = None,
    chunk_size: int = 64,
    placement: str = "qk",
    state: LinearAttentionState | None = None,
    return_state: bool = False,
) -> Tensor | tuple[LinearAttentionState, Tensor]:
    r"""o_i = sum_{j<=i} gamma^(i-j) (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_{j<=i} gamma^(i-j) phi(q_i) . phi(k_j).

    :func:`linear_attention` where no token sees a later one (arXiv 2006.16236, eq. 8-9), with an optional decay
    (arXiv 2307.08621, eq. 5-7). All chunks are taken in parallel but for the state that runs through them: memory
    and time are linear in seq. The numbers do not depend on ``chunk_size`` except for rounding.

    Args:
        decay: gamma, one for each head in (0, 1]: a list or a tensor ``[heads]``, which may be trained. None for 1.
            Distance counts positions, padding included.
        chunk_size: positive; any length is cut into chunks of this size and a rest.
        state: a :class:`LinearAttentionState` of tokens before these, which then are seen too. ``rotate`` has to be at
            the positions that follow, e.g. ``functools.partial(rotary, offset=state.length)``.
        return_state: also return the state after the last token, from which this function or
            :func:`linear_attention_step` continues.
        q, k, v, rotate, key_mask, feature_map, normalizer, segment_ids, placement: as :func:`linear_attention`, with
            the same bounds and dtypes.

    Returns:
        ``[batch, heads, seq, value_dim]`` in the dtype of ``q``; 0 where a query has no real key yet. With
        ``return_state`` the pair (state, output).

    Raises:
        ValueError: as :func:`linear_attention`; ``decay`` or ``chunk_size`` out of range; a feature map that looks at
            the whole sequence; a static graph of unknown length.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be positive, got {chunk_size}")
    if segment_ids is not None and (state is not None or return_state):
        raise ValueError("a state is of one text: give it without segment_ids")
    check_linear_options(feature_map, normalizer, placement)
    gammas = _checked_decay(decay, q)
    with without_amp():
        (phi_q, phi_k), below, values = _prepare(
            q, k, v, rotate, key_mask, feature_map, normalizer, segment_ids, placement, whole_sequence=False
        )
        after = _state_after(state, phi_k, below, values, gammas) if return_state else None
        if after is not None and values.shape[2] == 1:  # the recurrence: the token sees what the state now holds
            numerator = paddle.matmul(phi_q, after.key_values)
            denominators = _of_state(after, below)
        else:
            sums = partial(causal_sums, decay=gammas, segment_ids=segment_ids, chunk_size=chunk_size)
            numerator = sums(phi_q, phi_k, values)
            denominators = [sums(a, b, paddle.ones_like(values[..., :1])) for a, b in below]
            if state is not None:
                side = decay_of_state(gammas, values.shape[2], values.dtype)
                decayed = side and side.from_state
                numerator = numerator + _times(paddle.matmul(phi_q, state.key_values), decayed)
                denominators = [x + _times(y, decayed) for x, y in zip(denominators, _of_state(state, below))]
        output = _finish(numerator, denominators, normalizer, rotate, placement, q.dtype)
    return output if after is None else (after, output)


@paddle.jit.not_to_static  # as linear_attention
def linear_attention_step(
    state: LinearAttentionState | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rotate: Rotation | None = None,
    feature_map: FeatureMapLike = elu_plus_one,
    normalizer: str = "unrotated",
    decay: Sequence[float] | Tensor | None = None,
    placement: str = "qk",
) -> tuple[LinearAttentionState, Tensor]:
    r"""One token of :func:`causal_linear_attention`: ``state, y = linear_attention_step(state, q, k, v)``.

    S_i = gamma S_{i-1} + R_i phi(k_i) v_i^T, z_i = gamma z_{i-1} + phi(k_i),
    o_i = (R_i phi(q_i))^T S_i / phi(q_i)^T z_i (arXiv 2006.16236, eq. 18-20, there without R and gamma).
    Time and memory do not depend on the tokens before.

    Args:
        state: a :class:`LinearAttentionState`, float32 at least; None before the first token. It is not changed.
        q, k, v: ``[batch, heads, 1, head_dim]`` or, of v, ``value_dim``.
        rotate: a :class:`~paddle_rope.RotaryPositionEmbedding`; called with ``offset=state.length``.
        feature_map, normalizer, decay, placement: as :func:`causal_linear_attention`.

    Returns:
        The new state and y ``[batch, heads, 1, value_dim]`` in the dtype of ``q``.

    Raises:
        ValueError: more than one token; otherwise as :func:`causal_linear_attention`.
    """
    if q.shape[2] != 1 or k.shape[2] != 1:
        raise ValueError(f"a step takes one token, got {q.shape[2]} queries and {k.shape[2]} keys")
    rotate = None if rotate is None else partial(rotate, offset=0 if state is None else state.length)
    return causal_linear_attention(
        q, k, v, rotate, None, feature_map, normalizer, decay, placement=placement, state=state, return_state=True
    )


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


def _prepare(q, k, v, rotate, key_mask, feature_map, normalizer, segment_ids, placement, whole_sequence):
    """What every form begins with: float32 at least, features, rotations.

    Returns:
        The features ``(phi_q, phi_k)`` whose products are the weights of the numerator; a list of such pairs, the
        largest sum of whose products is the denominator (empty without one); and the values. Features are
        ``[batch, heads, seq, features]``, 0 at masked keys.
    """
    if q.shape[2] < 0 and not whole_sequence:
        raise ValueError("linear attention that is causal or has segment_ids needs a known length in static graphs")
    if segment_ids is not None:
        check_segments(segment_ids, k.shape[0], k.shape[2], side_by_side=True)
    q, k, v = at_least_float32(q, k, v)
    phi = as_feature_map(feature_map)
    plain_q, plain_k = phi.query(q), phi.key(k, key_mask)
    if key_mask is not None:
        plain_k = scaled(plain_k, key_mask.unsqueeze([1, 3]))
    turned_q = phi.after_rotation(rotate_at("q", plain_q, rotate, placement))
    turned_k = phi.after_rotation(rotate_at("k", plain_k, rotate, placement), key_mask)
    below = {"unrotated": [(plain_q, plain_k)], "rotated": [(turned_q, turned_k)]}.get(normalizer, [])
    if normalizer == "unrotated" and rotate is not None and set("qk") & set(placement):
        spread_q = plain_q.mean(axis=-1, keepdim=True) * MIN_OVERLAP
        below.append((spread_q, plain_k.sum(axis=-1, keepdim=True)))
    return (turned_q, turned_k), below, rotate_at("v", v, rotate, placement)


def _finish(numerator, denominators, normalizer, rotate, placement, dtype):
    """What every form ends with: numerator / max(denominators, ``MIN_DENOMINATOR``), or numerator / its root mean
    square where there are none; the rotation of o; ``dtype``."""
    if not denominators:
        output = numerator / paddle.sqrt(numerator.square().mean(axis=-1, keepdim=True) + _MIN_MEAN_SQUARE)
    else:
        denominator = reduce(paddle.maximum, denominators)
        output = numerator / paddle.clip(denominator, min=MIN_DENOMINATOR[normalizer])
    return rotate_at("o", output, rotate, placement).astype(dtype)


def _state_after(state, phi_k, below, v, decay):
    """``state`` when these tokens have passed too; ``below`` as from :func:`_prepare`."""
    seq = v.shape[2]
    side = decay_of_state(decay, seq, v.dtype)
    to_state, keep = (None, None) if side is None else (side.to_state, side.keep)
    key_values = paddle.matmul(_times(phi_k, to_state), v, transpose_x=True)
    keys = _times(below[0][1], to_state).sum(axis=2).unsqueeze(-1) if below else None
    if state is None:
        return LinearAttentionState(key_values, keys, seq)
    keys = None if keys is None else keys + _times(state.keys, keep)
    return LinearAttentionState(key_values + _times(state.key_values, keep), keys, state.length + seq)


def _of_state(state, below):
    """sum_j of the products of each pair of ``below``, over the keys that ``state`` remembers, without decay."""
    if not below:
        return []
    sums = state.keys, state.keys.sum(axis=2, keepdim=True)
    return [paddle.matmul(of_queries, of_keys) for (of_queries, _), of_keys in zip(below, sums)]


def _times(x, factor):
    """x times the factor; None for 1."""
    return x if factor is None else x * factor


def _checked_decay(decay, q):
    """Tensor ``[heads]`` in (0, 1], or None."""
    if decay is None:
        return None
    is_tensor = hasattr(decay, "stop_gradient")  # in static graphs it is no Tensor
    if is_tensor and not paddle.in_dynamic_mode():
        return decay  # its numbers are not known
    given, heads = decay.numpy() if is_tensor else np.asarray(decay), q.shape[1]
    if given.shape != (heads,) or not ((given > 0) & (given <= 1)).all():
        raise ValueError(f"decay must be {heads} numbers in (0, 1], one for each head, got {given.tolist()}")
    return decay if is_tensor else paddle.to_tensor(given, dtype="float64")
