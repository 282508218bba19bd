"""Slow, plain references: each function reads like its equation, with a loop for every index that is free or summed.

For tests: made of elementary operations so that gradients follow, and meant for float64. Nothing is stabilized,
batched or reordered here, so keep the inputs small in size and in value. Tensors are ``[batch, seq, heads, size]``.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import paddle
from paddle import Tensor, nn

Positions = Sequence[float] | None
Mask = Sequence[Sequence[Any]] | None  # ``[batch][seq]`` truth values or numbers


def rotate(x: Tensor, positions: Sequence[float], base: float = 10000.0) -> Tensor:
    r"""RoPE, pair by pair: kexue.fm 8265, eq. (11); arXiv 2104.09864, eq. (14)-(15).

    (y_{2i}, y_{2i+1}) = [[cos a, -sin a], [sin a, cos a]] (x_{2i}, x_{2i+1}) with a = m * base^(-2i/head_dim), for each
    vector x, ``[batch, seq, ..., head_dim]``, at its position m.
    """
    seq, head_dim = x.shape[1], x.shape[-1]
    vectors = []
    for index in range(seq):
        features = []
        for i in range(head_dim // 2):
            angle = float(positions[index]) * base ** (-2 * i / head_dim)
            even, odd = x[:, index, ..., 2 * i], x[:, index, ..., 2 * i + 1]
            features += [math.cos(angle) * even - math.sin(angle) * odd, math.sin(angle) * even + math.cos(angle) * odd]
        vectors.append(paddle.stack(features, axis=-1))
    return paddle.stack(vectors, axis=1)


def softmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    positions: Positions = None,
    key_mask: Mask = None,
    segment_ids: Mask = None,
    causal: bool = False,
    placement: str = "qk",
    slopes: Sequence[float] | None = None,
    window: int | None = None,
) -> Tensor:
    r"""o_i = sum_j exp(s_ij) v_j / sum_j exp(s_ij), s_ij = (R_i q_i) . (R_j k_j) / sqrt(head_dim) - slope |i - j|.

    arXiv 2104.09864, eq. (2) and (14)-(16); j runs over the keys that i sees. A query that sees no key gets 0. With v
    and o in ``placement``, o_i = R_i^-1 sum_j exp(s_ij) R_j v_j / sum_j exp(s_ij) (kexue.fm 10862).

    Args:
        positions: seq numbers for R; None for no rotation.
        key_mask, segment_ids: ``[batch][seq]``, False at padding; i sees the j of its own segment.
        slopes: a number for each head (ALiBi, arXiv 2108.12409); None for 0.
        window: i sees the j with \|i - j\| <= window only; None for all.
    """
    head_dim = q.shape[-1]
    q, k, v = _rotate_some(q, k, v, positions, placement)

    def weight(row, head, i, j):
        bias = 0.0 if slopes is None else -slopes[head] * abs(i - j)
        score = (q[row, i, head] * k[row, j, head]).sum() / math.sqrt(head_dim)
        return paddle.exp(score + bias)

    attended = _weighted_sums(weight, [weight], v, key_mask, segment_ids, causal, window)
    return _turn_back(attended, positions, placement)


def elu_plus_one(x: Tensor) -> Tensor:
    """phi of arXiv 2006.16236, eq. (7), as it is written there."""
    return paddle.nn.functional.elu(x) + 1


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    positions: Positions = None,
    key_mask: Mask = None,
    phi_q: Callable = elu_plus_one,
    phi_k: Callable = elu_plus_one,
    normalizer: str = "unrotated",
    segment_ids: Mask = None,
    causal: bool = False,
    decay: Sequence[float] | Tensor | None = None,
    placement: str = "qk",
) -> Tensor:
    r"""o_i = sum_j g_ij (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_j g_ij phi(q_i) . phi(k_j), g_ij = gamma^|i-j|.

    arXiv 2104.09864, eq. (19): R is in the numerator only (``normalizer="unrotated"``) or in both ("rotated"); "none":
    o_i is the numerator over its root mean square. Where R is in the numerator only, the denominator is at least 0.01
    of what it is for features that are replaced by their mean.
    """
    plain_q, plain_k = phi_q(q), phi_k(k)
    rotated_q, rotated_k, v = _rotate_some(plain_q, plain_k, v, positions, placement)

    def kept(row, head, i, j):
        return 1.0 if decay is None else decay[head] ** abs(i - j)

    def rotated(row, head, i, j):
        return kept(row, head, i, j) * (rotated_q[row, i, head] * rotated_k[row, j, head]).sum()

    def unrotated(row, head, i, j):
        return kept(row, head, i, j) * (plain_q[row, i, head] * plain_k[row, j, head]).sum()

    def even(row, head, i, j):
        of_query, of_key = plain_q[row, i, head], plain_k[row, j, head]
        return 0.01 * kept(row, head, i, j) * of_query.mean() * of_key.mean() * len(of_query)

    below = {"unrotated": [unrotated], "rotated": [rotated], "none": []}[normalizer]
    if normalizer == "unrotated" and positions is not None and ("q" in placement or "k" in placement):
        below.append(even)
    return _turn_back(_weighted_sums(rotated, below, v, key_mask, segment_ids, causal), positions, placement)


def cosine_attention(
    q: Tensor, k: Tensor, v: Tensor, positions: Positions = None, key_mask: Mask = None, causal: bool = False
) -> Tensor:
    r"""o_i = sum_j w_ij v_j / sum_j w_ij, w_ij = 1 + (R_i q_i) . (R_j k_j) / (|q_i| |k_j|): kexue.fm 7546, eq. (7)."""
    turned_q, turned_k, v = _rotate_some(q, k, v, positions, "qk")

    def weight(row, head, i, j):
        lengths = paddle.sqrt((q[row, i, head] ** 2).sum()) * paddle.sqrt((k[row, j, head] ** 2).sum())
        return 1 + (turned_q[row, i, head] * turned_k[row, j, head]).sum() / lengths

    return _weighted_sums(weight, [weight], v, key_mask, None, causal)


def _rotate_some(q, k, v, positions, placement):
    """q, k and v, rotated where ``placement`` has their letter."""
    places = placement if positions is not None else ""
    return [rotate(x, positions) if letter in places else x for letter, x in zip("qkv", (q, k, v))]


def _turn_back(output, positions, placement):
    """R^-1 of the output where ``placement`` has the letter o."""
    if positions is None or "o" not in placement:
        return output
    return rotate(output, [-position for position in positions])


def _visible_keys(batch, seq, key_mask, segment_ids, causal, window=None):
    """The j that i sees: ``[batch][seq]`` lists."""

    def sees(row, i, j):
        is_key = key_mask is None or bool(key_mask[row][j])
        same = segment_ids is None or int(segment_ids[row][i]) == int(segment_ids[row][j])
        return is_key and same and (j <= i or not causal) and (window is None or abs(i - j) <= window)

    return [[[j for j in range(seq) if sees(row, i, j)] for i in range(seq)] for row in range(batch)]


def _weighted_sums(above, below, v, key_mask, segment_ids, causal, window=None):
    """sum_j above(i, j) v_j / sum_j weight(i, j) for each i over the j it sees, ``[batch, seq, heads, value_dim]``.

    Of the weights ``below`` the largest sum divides; without them it is the root mean square of the numerator.
    """
    batch, seq, heads, _ = v.shape
    keys = _visible_keys(batch, seq, key_mask, segment_ids, causal, window)

    def attend(row, head, i):
        numerator = paddle.zeros_like(v[row, i, head])
        if not keys[row][i]:
            return numerator
        for j in keys[row][i]:
            numerator = numerator + above(row, head, i, j) * v[row, j, head]
        sums = [sum(weight(row, head, i, j) for j in keys[row][i]) for weight in below]
        return numerator / (max(sums) if below else paddle.sqrt((numerator**2).mean()))

    outputs = [attend(row, head, i) for row, i, head in itertools.product(range(batch), range(seq), range(heads))]
    return paddle.stack(outputs).reshape(v.shape)


def depthwise_convolution(
    x: Tensor, weight: Tensor, key_mask: Mask = None, segment_ids: Mask = None, causal: bool = False
) -> Tensor:
    r"""y_i = sum_{|t| <= radius} w_t * x_{i + t} over the i + t that are real tokens of the segment of i.

    MILA (arXiv 2405.16605), there in two dimensions. x is ``[batch, seq, hidden]``, the weight ``[2 radius + 1,
    hidden]``, of which row t + radius is w_t; if causal ``[size, hidden]``, the last row is w_0.
    """
    batch, seq, _ = x.shape
    size = weight.shape[0]
    before = size - 1 if causal else size // 2

    def convolve(row, i):
        y = paddle.zeros_like(x[row, i])
        for j in range(max(0, i - before), min(seq, i - before + size)):
            is_real = key_mask is None or bool(key_mask[row][j])
            if is_real and (segment_ids is None or int(segment_ids[row][i]) == int(segment_ids[row][j])):
                y = y + weight[j - i + before] * x[row, j]
        return y

    return paddle.stack([convolve(*index) for index in itertools.product(range(batch), range(seq))]).reshape(x.shape)


def global_pointer(layer: nn.Layer, hidden: Tensor, token_mask: Mask = None, no_span: float = -1e4) -> Tensor:
    r"""s_t(i, j) = (R_i q_{t,i}) . (R_j k_{t,j}) / sqrt(head_size), q_{t,i} = W_{q,t} h_i + b_{q,t}, k alike.

    kexue.fm 8373, eq. (1)-(2), with the factor 1 / sqrt(head_size) of its author's bert4keras. The columns of the
    layer's weight are q_1 k_1 q_2 k_2 ..., each of head_size. ``no_span`` where j < i or where i or j is masked.
    """
    projections = [_project(layer, hidden, number, layer.rotary) for number in range(2 * layer.num_types)]
    queries, keys = projections[0::2], projections[1::2]

    def score(row, kind, i, j):
        return (queries[kind][row, i] * keys[kind][row, j]).sum() / math.sqrt(layer.head_size)

    return _for_each_span(score, hidden, layer.num_types, token_mask, no_span)


def efficient_global_pointer(layer: nn.Layer, hidden: Tensor, token_mask: Mask = None, no_span: float = -1e4) -> Tensor:
    r"""s_t(i, j) = (R_i q_i) . (R_j k_j) / sqrt(head_size) + (w_t . [q_i; k_i] + a_t + u_t . [q_j; k_j] + b_t) / 2.

    kexue.fm 8877, eq. (3), with sqrt(head_size) and 2 as in its author's bert4keras: one q and k for all types; the
    type follows from q and k themselves, before rotation. The columns of ``type_scores.weight`` are
    w_1 .. w_T u_1 .. u_T, of its bias a_1 .. a_T b_1 .. b_T.
    """
    types, type_weight, type_bias = layer.num_types, layer.type_scores.weight, layer.type_scores.bias
    plain = paddle.concat([_project(layer, hidden, number) for number in (0, 1)], axis=-1)  # [..., seq, :]: [q_i; k_i]
    queries, keys = (_project(layer, hidden, number, layer.rotary) for number in (0, 1))

    def score(row, kind, i, j):
        span = (queries[row, i] * keys[row, j]).sum() / math.sqrt(layer.head_size)
        start = (type_weight[:, kind] * plain[row, i]).sum() + type_bias[kind]
        end = (type_weight[:, types + kind] * plain[row, j]).sum() + type_bias[types + kind]
        return span + (start + end) / 2

    return _for_each_span(score, hidden, types, token_mask, no_span)


def band_of_spans(logits: Tensor, max_span_length: int, no_span: float = -1e4) -> Tensor:
    """b_t(i, d) = s_t(i, i + d), d = 0 .. max_span_length - 1, ``no_span`` where i + d is past the end."""
    seq = logits.shape[-1]
    outside = paddle.full(logits.shape[:2], no_span, dtype=logits.dtype)
    spans = [logits[:, :, i, i + d] if i + d < seq else outside for i in range(seq) for d in range(max_span_length)]
    return paddle.stack(spans, axis=-1).reshape([*logits.shape[:2], seq, max_span_length])


def _project(layer, hidden, number, rotary=None):
    """h_i W + b with the columns ``number`` * head_size ... of W, head_size of them, rotated by R_i with ``rotary``."""
    columns = slice(number * layer.head_size, (number + 1) * layer.head_size)
    projected = paddle.matmul(hidden, layer.dense.weight[:, columns]) + layer.dense.bias[columns]
    return projected if rotary is None else rotate(projected, range(hidden.shape[1]), rotary.base)


def _for_each_span(score, hidden, types, token_mask, no_span):
    """``score(row, kind, i, j)`` for every span -> ``[batch, types, seq, seq]``, ``no_span`` elsewhere."""
    batch, seq, _ = hidden.shape
    scores = []
    for row, kind, i, j in itertools.product(range(batch), range(types), range(seq), range(seq)):
        is_span = i <= j and (token_mask is None or bool(token_mask[row][i]) and bool(token_mask[row][j]))
        value = score(row, kind, i, j) if is_span else paddle.full([], no_span, dtype=hidden.dtype)
        scores.append(value.reshape([1]))
    return paddle.concat(scores).reshape([batch, types, seq, seq])


def multilabel_categorical_crossentropy(logits: Tensor, labels: Sequence[Sequence[Any]]) -> Tensor:
    r"""log(1 + sum_{n in negatives} exp(s_n)) + log(1 + sum_{p in positives} exp(-s_p)): kexue.fm 7359.

    The exponentials are summed as they are, so scores, float64 ``[rows, classes]``, must stay within a few hundred.
    """
    losses = []
    for scores, is_positive in zip(logits, labels):
        negatives = [paddle.exp(score) for score, positive in zip(scores, is_positive) if not positive]
        positives = [paddle.exp(-score) for score, positive in zip(scores, is_positive) if positive]
        losses.append(sum(paddle.log(sum(side, 1.0)) for side in (negatives, positives) if side))
    return paddle.stack(losses)
