"""Slow, plain forms: each function reads like its equation, with the weights of all pairs (i, j) ``[seq, seq]``.

Made of elementary operations so that gradients follow, and meant for float64. Nothing is stabilized or
reordered here, so keep the inputs small in size and in value. Tensors are ``[batch, seq, heads, size]``, weights
``[batch, heads, seq, seq]``; masks and segments are ``[batch][seq]``; ``turn`` is a rotation, such as
``functools.partial(rotate, positions=range(5))``, or None.
"""

import math

import numpy as np
import paddle


def rotate(x, positions, base=10000.0, theta=None, layout="interleaved", amplitude=1.0, inverse=False):
    r"""RoPE, pair by pair: kexue.fm 8265, eq. (11); arXiv 2104.09864, eq. (14)-(15).

    (y_{2i}, y_{2i+1}) = [[cos a, -sin a], [sin a, cos a]] (x_{2i}, x_{2i+1}) with a = m theta_i for each vector x,
    ``[batch, seq, ..., head_dim]``, at its position m, ``[seq]`` or ``[batch][seq]``; theta_i is base^(-2i/head_dim)
    unless ``theta`` is given, and features after its pairs are unchanged. The pairs of the layout ``"half"`` are
    (i, i + number of pairs).

    >>> rotate(paddle.to_tensor([[[1.0, 0.0]]]), [math.pi / 2]).numpy().round(3).tolist()
    [[[0.0, 1.0]]]
    """
    theta = [base ** (-2 * i / x.shape[-1]) for i in range(x.shape[-1] // 2)] if theta is None else theta
    m = np.asarray(positions, dtype=np.float64)
    m = (-m if inverse else m).reshape([*m.shape, *[1] * (x.ndim - 3)])
    amplitude = 1 / amplitude if inverse else amplitude
    features = paddle.unbind(x, axis=-1)
    for i, frequency in enumerate(theta):
        first, second = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + len(theta))
        angle = paddle.to_tensor(m) * frequency
        cosine, sine = ((amplitude * table).astype(x.dtype) for table in (paddle.cos(angle), paddle.sin(angle)))
        a, b = features[first], features[second]
        features[first], features[second] = a * cosine - b * sine, a * sine + b * cosine
    return paddle.stack(features, axis=-1)


def softmax_attention(
    q, k, v, turn=None, key_mask=None, segment_ids=None, causal=False, placement="qk", slopes=None, window=None
):
    r"""o_i = sum_j exp(s_ij) v_j / sum_j exp(s_ij), s_ij = (R_i q_i) . (R_j k_j) / sqrt(head_dim) - slope |i - j|.

    arXiv 2104.09864, eq. (2) and (14)-(16); j runs over the keys that i sees. A query that sees no key gets 0. With v
    and o in ``placement``, o_i = R_i^-1 sum_j exp(s_ij) R_j v_j / sum_j exp(s_ij) (kexue.fm 10862).

    Args:
        key_mask, segment_ids: False at padding; i sees the j of its segment.
        slopes: a number for each head (ALiBi, arXiv 2108.12409); None for 0.
        window: i sees the j with \|i - j\| <= window only; None for all.

    >>> x = paddle.to_tensor([0.0, 2.0]).reshape([1, 2, 1, 1])
    >>> softmax_attention(0 * x, x, x).flatten().tolist()
    [1.0, 1.0]
    """
    q, k, v = _rotate_some(q, k, v, turn, placement)
    scores = _products(q, k) / math.sqrt(q.shape[-1])
    if slopes is not None:
        scores = scores - _for_each_head(slopes, q) * _distances(q)
    weights = paddle.exp(scores)
    attended = _weighted_means(weights, [weights], v, _visible(v, key_mask, segment_ids, causal, window))
    return attended if turn is None or "o" not in placement else turn(attended, inverse=True)


def elu_plus_one(x):
    """phi of arXiv 2006.16236, eq. (7), literally.

    >>> elu_plus_one(paddle.to_tensor([0.0, 2.0])).tolist()
    [1.0, 3.0]
    """
    return paddle.nn.functional.elu(x) + 1


def linear_attention(
    q, k, v, turn=None, key_mask=None, phi_q=elu_plus_one, phi_k=elu_plus_one, normalizer="unrotated",
    segment_ids=None, causal=False, decay=None, placement="qk", constant=0.0,
):  # fmt: skip
    r"""o_i = sum_j g_ij (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_j g_ij phi(q_i) . phi(k_j), g_ij = gamma^|i-j|.

    arXiv 2104.09864, eq. (19): R is in the numerator only (``normalizer="unrotated"``) or in both ("rotated"); "none":
    o_i is the numerator over its root mean square. Where R is in the numerator only, the denominator is at least 0.01
    times its value with all features replaced by their mean. ``constant`` is added to the products of features: 1 in
    1 + cos (kexue.fm 7546, eq. 7), where phi(x) = x / |x|.

    >>> x = paddle.to_tensor([0.0, 2.0]).reshape([1, 2, 1, 1])
    >>> linear_attention(x, x, x).flatten().tolist()
    [1.5, 1.5]
    """
    plain_q, plain_k = phi_q(q), phi_k(k)
    rotated_q, rotated_k, v = _rotate_some(plain_q, plain_k, v, turn, placement)
    kept = 1.0 if decay is None else _for_each_head(decay, q) ** _distances(q)
    rotated, unrotated = (kept * (constant + _products(*qk)) for qk in ((rotated_q, rotated_k), (plain_q, plain_k)))
    below = {"unrotated": [unrotated], "rotated": [rotated], "none": []}[normalizer]
    if normalizer == "unrotated" and turn is not None and ("q" in placement or "k" in placement):
        even_q, even_k = (x.mean(axis=-1, keepdim=True) for x in (plain_q, plain_k))
        below.append(0.01 * plain_q.shape[-1] * kept * _products(even_q, even_k))
    attended = _weighted_means(rotated, below, v, _visible(v, key_mask, segment_ids, causal))
    return attended if turn is None or "o" not in placement else turn(attended, inverse=True)


def _rotate_some(q, k, v, turn, placement):
    """q, k and v, rotated where ``placement`` has their letter."""
    places = placement if turn is not None else ""
    return [turn(x) if letter in places else x for letter, x in zip("qkv", (q, k, v))]


def _products(q, k):
    """q_i . k_j of each head."""
    return paddle.matmul(q.transpose([0, 2, 1, 3]), k.transpose([0, 2, 3, 1]))


def _for_each_head(numbers, x):
    """``[heads]`` -> ``[heads, 1, 1]``."""
    numbers = numbers if isinstance(numbers, paddle.Tensor) else paddle.to_tensor(numbers, dtype="float64")
    return numbers.astype(x.dtype).reshape([-1, 1, 1])


def _distances(x):
    """|i - j| ``[seq, seq]``."""
    index = np.arange(x.shape[1])
    return paddle.to_tensor(np.abs(index[:, np.newaxis] - index), dtype=x.dtype)


def _visible(x, key_mask, segment_ids, causal, window=None):
    """1 where i sees j, 0 elsewhere: ``[batch, 1, seq, seq]``."""
    index = np.arange(x.shape[1])
    ahead = index - index[:, np.newaxis]
    visible = np.ones([x.shape[0], *ahead.shape], dtype=bool)
    visible &= (ahead <= 0) | (not causal)
    visible &= True if window is None else np.abs(ahead) <= window
    if key_mask is not None:
        visible &= np.asarray(key_mask, dtype=bool)[:, np.newaxis]
    if segment_ids is not None:
        segments = np.asarray(segment_ids)
        visible &= segments[:, :, np.newaxis] == segments[:, np.newaxis]
    return paddle.to_tensor(visible[:, np.newaxis], dtype=x.dtype)


def _weighted_means(above, below, v, visible):
    """sum_j above_ij v_j / sum_j below_ij over the j that i sees; 0 where it sees none.

    The divisor is the largest of the sums of ``below``, or the root mean square of the numerator if there are none.
    """
    numerator = paddle.matmul(above * visible, v.transpose([0, 2, 1, 3]))
    sees_none = (visible.sum(axis=-1, keepdim=True) == 0).astype(v.dtype)
    if below:
        sums = [(weights * visible).sum(axis=-1, keepdim=True) for weights in below]
        divisor = (sums[0] if len(sums) == 1 else paddle.maximum(*sums)) + sees_none
    else:
        divisor = paddle.sqrt((numerator**2).mean(axis=-1, keepdim=True) + sees_none)
    return (numerator / divisor).transpose([0, 2, 1, 3])


def depthwise_convolution(x, weight, key_mask=None, segment_ids=None, causal=False):
    r"""y_i = sum_{|t| <= radius} w_t * x_{i + t} over the i + t that are real tokens of the segment of i.

    MILA (arXiv 2405.16605), there in two dimensions. x is ``[batch, seq, hidden]``, the weight ``[2 radius + 1,
    hidden]``, of which row t + radius is w_t; if causal ``[size, hidden]``, the last row is w_0.

    >>> depthwise_convolution(paddle.to_tensor([[[1.0], [2.0], [4.0]]]), paddle.ones([3, 1])).flatten().tolist()
    [3.0, 7.0, 6.0]
    """
    seq, size = x.shape[1], weight.shape[0]
    before, visible = size - 1 if causal else size // 2, _visible(x, key_mask, segment_ids, causal)
    y = []
    for i in range(seq):
        near = range(max(0, i - before), min(seq, i - before + size))
        y.append(sum(visible[:, 0, i, j].unsqueeze(1) * weight[j - i + before] * x[:, j] for j in near))
    return paddle.stack(y, axis=1)


def global_pointer(layer, hidden, positions, token_mask=None):
    r"""s_t(i, j) = (R_i q_{t,i}) . (R_j k_{t,j}) / sqrt(head_size), q_{t,i} = W_{q,t} h_i + b_{q,t}, k likewise.

    kexue.fm 8373, eq. (1)-(2), with the factor 1 / sqrt(head_size) of its author's bert4keras. The columns of the
    layer's weight are q_1 k_1 q_2 k_2 ..., each of head_size. -10000 where j < i or where i or j is masked.

    >>> from paddle_rope import GlobalPointer
    >>> tuple(global_pointer(GlobalPointer(8, num_types=3), paddle.ones([2, 5, 8]), range(5)).shape)
    (2, 3, 5, 5)
    """
    projections = [_project(layer, hidden, number, positions) for number in range(2 * layer.num_types)]
    scores = [paddle.matmul(q, k, transpose_y=True) for q, k in zip(projections[0::2], projections[1::2])]
    return _of_spans(paddle.stack(scores, axis=1) / math.sqrt(layer.head_size), token_mask)


def efficient_global_pointer(layer, hidden, positions, token_mask=None):
    r"""s_t(i, j) = (R_i q_i) . (R_j k_j) / sqrt(head_size) + (w_t . [q_i; k_i] + a_t + u_t . [q_j; k_j] + b_t) / 2.

    kexue.fm 8877, eq. (3), with sqrt(head_size) and 2 as in its author's bert4keras: one q and k for all types; the
    type scores are computed from q and k before rotation. The columns of ``type_scores.weight`` are
    w_1 .. w_T u_1 .. u_T, the entries of its bias a_1 .. a_T b_1 .. b_T.

    >>> from paddle_rope import EfficientGlobalPointer
    >>> tuple(efficient_global_pointer(EfficientGlobalPointer(8, num_types=3), paddle.ones([2, 5, 8]), range(5)).shape)
    (2, 3, 5, 5)
    """
    plain = paddle.concat([_project(layer, hidden, number) for number in (0, 1)], axis=-1)  # [q; k] of each token
    q, k = (_project(layer, hidden, number, positions) for number in (0, 1))
    products = paddle.matmul(q, k, transpose_y=True) / math.sqrt(layer.head_size)
    of_types = paddle.matmul(plain, layer.type_scores.weight) + layer.type_scores.bias  # [batch, seq, 2 types]
    scores = []
    for t in range(layer.num_types):
        start, end = of_types[:, :, t], of_types[:, :, layer.num_types + t]
        scores.append(products + (start.unsqueeze(2) + end.unsqueeze(1)) / 2)
    return _of_spans(paddle.stack(scores, axis=1), token_mask)


def _project(layer, hidden, number, positions=None):
    """h_i W + b with head_size columns of W from ``number`` * head_size on; rotated by R_i if positions are given."""
    columns = slice(number * layer.head_size, (number + 1) * layer.head_size)
    projected = paddle.matmul(hidden, layer.dense.weight[:, columns]) + layer.dense.bias[columns]
    if positions is None or layer.rotary is None:
        return projected
    return rotate(projected, positions, layer.rotary.base)


def _of_spans(scores, token_mask):
    """``[batch, types, seq, seq]`` with -10000 where j < i or where i or j is masked."""
    mask = np.ones([scores.shape[0], scores.shape[2]]) if token_mask is None else np.asarray(token_mask)
    is_span = np.triu(mask[:, :, np.newaxis] * mask[:, np.newaxis]).astype(bool)
    is_span = paddle.to_tensor(is_span).unsqueeze(1).expand(scores.shape)
    return paddle.where(is_span, scores, paddle.full_like(scores, -10000.0))


def multilabel_categorical_crossentropy(logits, labels):
    r"""log(1 + sum_{n in negatives} exp(s_n)) + log(1 + sum_{p in positives} exp(-s_p)): kexue.fm 7359.

    The exponentials are summed as they are, so scores, float64 ``[..., classes]``, must stay within a few hundred.

    >>> multilabel_categorical_crossentropy(paddle.to_tensor([[9.0, -9.0]]), [[1, 0]]).item() < 0.001
    True
    """
    is_positive = paddle.to_tensor(np.asarray(labels), dtype=logits.dtype)
    negatives = ((1 - is_positive) * paddle.exp(logits)).sum(axis=-1)
    positives = (is_positive * paddle.exp(-logits)).sum(axis=-1)
    return paddle.log(1 + negatives) + paddle.log(1 + positives)
