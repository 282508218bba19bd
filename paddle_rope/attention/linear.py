"""Linear attention with RoPE in the numerator: bidirectional, causal, and continued token by token from a state."""

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.attention.arguments import (
    as_mask,
    by_head,
    check_layout,
    check_placement,
    check_segments,
    rotate_back,
    rotate_qkv,
)
from paddle_rope.attention.feature_maps import FeatureMapLike, as_feature_map, elu_plus_one
from paddle_rope.layers import at_least_float32, computes_on_cpu, padded, scaled, without_amp
from paddle_rope.native.dispatch import native_form
from paddle_rope.native.operators import native_linear_attention
from paddle_rope.options import NORMALIZERS, check_feature_map, choice
from paddle_rope.rotary import Rope

# Lower bound of the denominator. Unrotated, it is a sum of non-negative terms: the bound is for a query without any
# real key or positive feature, and far below the sums of small features (FAVOR+ of long keys). Rotated, it can cross 0:
# the bound keeps the quotient finite in training.
MIN_DENOMINATOR = {"unrotated": 1e-30, "rotated": 1e-6}
# Second lower bound of the unrotated denominator, because a rotated numerator is not 0 where the features of query and
# keys do not overlap: this fraction of the denominator for features with the same sums, spread evenly.
MIN_OVERLAP = 0.01
# Added to the mean square of an output without denominator.
_MIN_MEAN_SQUARE = 1e-12
# A text up to the first length is one chunk; longer ones are cut into chunks of the second.
_ONE_CHUNK, _CHUNK = 128, 64


@native_form(native_linear_attention, check_layout, feature_map=elu_plus_one, segment_ids=None, placement="qk")
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
    linear in seq. Sums are kept in float32 at least, even for half-precision inputs and under AMP; on a GPU, bfloat16
    inputs are multiplied in bfloat16 by tensor cores, which sum in float32.

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
    sees_all = not causal and segment_ids is None
    check_linear_options(feature_map, normalizer, placement, whole_sequence=sees_all)
    if q.shape[1] < 0 and not sees_all:
        raise ValueError("linear attention that is causal or has segment_ids needs a known length in static graphs")
    check_segments(segment_ids, k.shape[0], k.shape[1], contiguous=True)
    decay = _checked_decay(decay, q.shape[2])
    with without_amp():  # AMP would compute the sums in half precision
        numerator, denominators = _terms(q, k, v, rope, key_mask, feature_map, normalizer, placement)
        multiply = _product_in(q.dtype)

        def sums(q, k, v):  # over all j: the sum of k_j v_j^T is taken once
            return multiply(q, multiply(k, v, transpose_x=True))

        if decay is not None or not sees_all:
            sums = _chunked_sums(numerator[2], decay, segment_ids, causal, multiply)
        output = _quotient(sums(*numerator), [sums(*one) for one in denominators], normalizer)
        return rotate_back(by_head(output), rope, placement).astype(q.dtype)


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
    decay = _checked_decay(decay, q.shape[2])
    with without_amp():
        numerator, denominators = _terms(q, k, v, rope, key_mask, feature_map, normalizer, placement)
        multiply = _product_in(q.dtype)
        sums = _chunked_sums(numerator[2], decay, causal=True, multiply=multiply)
        known = (None, None) if state is None else state[:2]
        above, key_values = _continued(sums, decay, multiply, known[0], *numerator)
        below: list[Tensor] = []
        keys = None
        for one in denominators:  # with RoPE a second one, of keys that are replaced by the sum of their features
            before = known[1] if known[1] is None or not below else known[1].sum(axis=2, keepdim=True)
            found, behind = _continued(sums, decay, multiply, before, *one)
            keys = keys if below else behind
            below.append(found)
        output = rotate_back(by_head(_quotient(above, below, normalizer)), rope, placement).astype(q.dtype)
    return LinearAttentionState(key_values, keys, (state.length if state else 0) + q.shape[1]), output


def check_linear_options(
    feature_map: FeatureMapLike, normalizer: str, placement: str, whole_sequence: bool = False
) -> None:
    """Raise ValueError for options that contradict each other; ``whole_sequence``: a query sees all keys of its row."""
    check_placement(placement)
    choice(*NORMALIZERS).check("normalizer", normalizer)
    phi = as_feature_map(feature_map)
    check_feature_map(type(phi).__name__, normalizer, whole_sequence, phi.over_sequence, phi.rotates_denominator)


def _terms(q, k, v, rope, key_mask, feature_map, normalizer, placement):
    """The inputs of the sums sum_j (q_i . k_j) v_j, ``[batch, heads, seq, size]``, 0 at masked keys: (q, k, v) of the
    numerator, rotated by RoPE; and a list with (q, k, v) of each denominator, the largest of which divides.
    """
    q, k, v = at_least_float32(q, k, v)
    phi, key_mask = as_feature_map(feature_map), as_mask("key_mask", key_mask, k.shape[0], k.shape[1])
    phi_q, phi_k = phi.query(q), phi.key(k, key_mask)
    if key_mask is not None:
        phi_k = scaled(phi_k, key_mask.unsqueeze([2, 3]))
    rotated_q, rotated_k, rotated_v = rotate_qkv(phi_q, phi_k, v, rope, placement)
    rotated_q, rotated_k = phi.after_rotation(rotated_q), phi.after_rotation(rotated_k, key_mask)
    numerator = by_head(rotated_q), by_head(rotated_k), by_head(rotated_v)
    ones, denominators = paddle.ones_like(numerator[2][..., :1]), []
    if normalizer == "rotated":
        denominators.append((*numerator[:2], ones))
    if normalizer == "unrotated":
        phi_q, phi_k = by_head(phi_q), by_head(phi_k)
        denominators.append((phi_q, phi_k, ones))
        if rope is not None and ("q" in placement or "k" in placement):
            spread_q = phi_q.mean(axis=-1, keepdim=True) * MIN_OVERLAP
            denominators.append((spread_q, phi_k.sum(axis=-1, keepdim=True), ones))
    return numerator, denominators


def _product_in(dtype):
    """The matrix product for inputs of a dtype. Everything else, such as states and decay, is at least float32."""
    if dtype != paddle.bfloat16 or not paddle.in_dynamic_mode() or computes_on_cpu():
        return paddle.matmul  # float16 would overflow, and Paddle multiplies no bfloat16 on CPU

    def multiply(x, y, **transposed):
        return paddle.matmul(x.astype(dtype), y.astype(dtype), **transposed).astype("float32")

    return multiply


def _quotient(numerator, denominators, normalizer):
    """numerator / max(denominators, ``MIN_DENOMINATOR``), or over its root mean square where there are none."""
    if not denominators:
        return numerator / paddle.sqrt(numerator.square().mean(axis=-1, keepdim=True) + _MIN_MEAN_SQUARE)
    return numerator / paddle.clip(reduce(paddle.maximum, denominators), min=MIN_DENOMINATOR[normalizer])


def _chunked_sums(like, decay=None, segment_ids=None, causal=False, multiply=paddle.matmul):
    r"""A function of q, k, v: s_i = sum_j gamma^|i - j| (q_i . k_j) v_j, over the j <= i or all j, of the segment of i.

    Within a chunk of tokens the weights are computed, ``[size, size]``. Tokens outside it contribute through a state
    for each side, the matrix sum_j k_j v_j^T, carried from chunk to chunk. No exponent of a gamma is negative.

    ``like`` ``[batch, heads, seq, size]`` has the length and dtype of the sums. If a static graph does not know the
    length, all tokens form one chunk, which is quadratic in seq.
    """
    seq, dtype = like.shape[2], like.dtype  # -1 where a static graph does not know the length
    chunk = seq if seq <= _ONE_CHUNK else _CHUNK
    size = chunk if seq >= 0 else paddle.shape(like)[2]

    def split(x):
        """``[batch, heads, seq, features]`` -> ``[batch, heads, chunks, size, features]``, zeros at the end."""
        if chunk == seq:
            return x.unsqueeze(2)
        chunks = (seq + chunk - 1) // chunk
        x = padded(x, 2, after=chunks * chunk - seq)
        return x.reshape([*x.shape[:2], chunks, chunk, x.shape[3]])

    index = paddle.arange(size).astype(dtype).unsqueeze(1)
    lag = index - index.transpose([1, 0])  # i - j
    gamma = None if decay is None else decay.astype(dtype).reshape([1, -1, 1, 1, 1])
    factors = [(lag >= 0).astype(dtype)] if causal else []
    if gamma is not None:
        factors.append(gamma ** lag.abs())
    seen_left = seen_right = None
    if segment_ids is not None:
        ids = split(segment_ids.unsqueeze([1, 3]))  # [batch, 1, chunks, size, 1]
        factors.append((ids == ids.transpose([0, 1, 2, 4, 3])).astype(dtype))
        # Segments are contiguous: a state belongs to the segment at the edge of its chunk. The first one is 0
        first, last = ids[:, :, :, :1], ids[:, :, :, -1:]
        before = paddle.concat([last[:, :, :1], last[:, :, :-1]], axis=2)
        after = paddle.concat([first[:, :, 1:], first[:, :, -1:]], axis=2)
        seen_left = [seen.astype(dtype) for seen in (ids == before, ids == last, last == before)]
        seen_right = [seen.astype(dtype) for seen in (ids == after, ids == first, first == after)]
    within = reduce(mul, factors) if factors else None
    sides = [(_weights(gamma, (index + 1, size - 1 - index, size), seen_left), False)]
    if not causal:
        sides.append((_weights(gamma, (size - index, index, size), seen_right), True))

    def sums(q, k, v):
        """q, k ``[batch, heads, seq, features]``, v ``[batch, heads, seq, value_dim]`` -> as v."""
        q, k, v = split(q), split(k), split(v)
        if k.shape[-1] == 1 and not paddle.in_dynamic_mode():
            # oneDNN's matrix product of one feature is wrong in graphs of paddle 3.3.1
            products = q * k.transpose([0, 1, 2, 4, 3])
        else:
            products = multiply(q, k, transpose_y=True)
        sums = multiply(_times(products, within), v)
        if chunk == seq:
            return sums.squeeze(2)
        for (from_state, to_state, keep), reverse in sides:
            states = _running_states(multiply(_times(k, to_state), v, transpose_x=True), keep, reverse)
            sums = sums + multiply(_times(q, from_state), states)
        return sums.flatten(2, 3)[:, :, :seq]

    return sums


def _continued(sums, decay, multiply, state, q, k, v):
    """The causal sums of the tokens that follow ``state`` (None at the beginning of a text), and the next state."""
    seq = q.shape[2]
    index = paddle.arange(seq).astype(q.dtype).unsqueeze(1)
    gamma = None if decay is None else decay.astype(q.dtype).reshape([1, -1, 1, 1])
    from_state, to_state, keep = _weights(gamma, (index + 1, seq - 1 - index, seq))
    found, next_state = sums(q, k, v), multiply(_times(k, to_state), v, transpose_x=True)
    if state is not None:
        found = found + multiply(_times(q, from_state), state)
        next_state = next_state + _times(state, keep)
    return found, next_state


def _weights(gamma, exponents, seen=None):
    """The weights of a chunk and the state on one side of it: from that state to each token, ``[..., size, 1]``, from
    each token to the state that the next chunk sees, and from state to state. They are powers of gamma, by distance,
    times ``seen``, 0 or 1; None for 1.
    """
    if gamma is None:
        return seen or [None] * 3
    return [gamma**exponent if seen is None else gamma**exponent * seen[i] for i, exponent in enumerate(exponents)]


def _times(x, factor):
    """x times the factor; None for 1."""
    return x if factor is None else scaled(x, factor)


def _running_states(updates, keep, reverse):
    """state_0 = 0, state_{c+1} = keep_c state_c + update_c: the state before each chunk, or behind it in
    ``reverse``."""
    step = -1 if reverse else 1
    if keep is not None:
        keep = paddle.unbind(keep.expand([*updates.shape[:3], 1, 1]), axis=2)[::step]
    updates = paddle.unbind(updates, axis=2)[::step]
    states = [paddle.zeros_like(updates[0])]
    for chunk, update in enumerate(updates[:-1]):
        state = states[-1] if keep is None else states[-1] * keep[chunk]
        states.append(state + update)
    return paddle.stack(states[::step], axis=2)


def _checked_decay(decay, heads):
    """Tensor ``[heads]`` in (0, 1], or None."""
    if decay is None:
        return None
    is_list = isinstance(decay, (list, tuple, float, np.ndarray))
    if not is_list and not computes_on_cpu():
        return decay  # a graph variable, or on a GPU, where reading the values would wait for it
    given = np.asarray(decay if is_list else decay.numpy())
    if given.shape != (heads,) or not ((given > 0) & (given <= 1)).all():
        raise ValueError(f"decay must be {heads} numbers in (0, 1], one for each head, got {given.tolist()}")
    return paddle.to_tensor(given, dtype="float64") if is_list else decay
