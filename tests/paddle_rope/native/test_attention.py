"""Softmax and linear attention: the native forms against the plain ones, and what native forms do not compute."""

import sys

import numpy as np
import paddle
import pytest

from paddle_rope import (
    LinearScaling,
    MultiHeadAttention,
    RotaryPositionEmbedding,
    YaRNScaling,
    linear_attention,
    softmax_attention,
)
from paddle_rope.attention import relu
from paddle_rope.native.dispatch import plain_forms
from tests.helpers.pairwise import pairwise
from tests.paddle_rope.native.comparison import (
    assert_same,
    is_native,
    kept_without_backward,
    outputs_and_gradients,
    tensor,
)

HEADS, DIM = 2, 8
KERNELS = {
    "softmax": (softmax_attention, {}),
    "causal softmax": (softmax_attention, {"causal": True}),
    "linear": (linear_attention, {}),
    "causal linear": (linear_attention, {"causal": True}),
    "linear, decay": (linear_attention, {"decay": (0.1, 0.97)}),
    "causal linear, decay": (linear_attention, {"decay": (0.1, 0.97), "causal": True}),
    "linear, output norm": (linear_attention, {"normalizer": "none"}),
    "causal linear, decay, output norm": (
        linear_attention,
        {"normalizer": "none", "decay": (0.1, 0.97), "causal": True},
    ),
}
ROTARIES = {
    "none": None,
    "interleaved": RotaryPositionEmbedding(DIM),
    "half": RotaryPositionEmbedding(DIM, layout="half", scaling=LinearScaling(2.0)),
    "YaRN": RotaryPositionEmbedding(DIM, scaling=YaRNScaling(4.0, 32)),
}
# float32 sums in another order; the root mean square of a small numerator enlarges them
TOLERANCE = 2e-4


def qkv(*shape):
    return [tensor(*shape) for _ in range(3)]


def one_head(kernel, q, k, v, *arguments, **options):
    """Of ``[batch, seq, head_dim]``."""
    return kernel(*(x.unsqueeze(2) for x in (q, k, v)), *arguments, **options).squeeze(2)


def assert_native_equals_plain(function, inputs, tolerance=TOLERANCE):
    def plain():
        with plain_forms():
            return function()

    assert is_native(function()) and not is_native(plain())
    assert_same(function, plain, inputs, tolerance)


@pairwise({"name": list(KERNELS), "rotary": list(ROTARIES), "seq": [1, 7, 300]})  # of one chunk and of several
def test_outputs_and_gradients_equal_the_plain_form(name, rotary, seq):
    (kernel, options), inputs = KERNELS[name], qkv(2, seq, HEADS, DIM)
    rope = ROTARIES[rotary] and ROTARIES[rotary].cos_sin(seq)
    mask = paddle.to_tensor(np.arange(seq) < np.array([[seq], [max(1, seq - 2)]]))
    assert_native_equals_plain(lambda: kernel(*inputs, rope, mask, **options), inputs)


@pytest.mark.parametrize("shape", [[3, 10], [1, 10], [10]], ids=["of each text", "of all, one row", "of all"])
@pytest.mark.parametrize("kernel", [softmax_attention, linear_attention])
def test_positions_and_segments_equal_the_plain_form(kernel, shape):
    inputs = qkv(3, 10, HEADS, DIM)
    rope = RotaryPositionEmbedding(DIM).cos_sin(paddle.to_tensor(np.random.randint(0, 50, shape)))
    options = {}
    if kernel is softmax_attention:
        segments = np.sort(np.random.randint(0, 3, [3, 10]), axis=1).astype("int32")
        options = {"segment_ids": paddle.to_tensor(segments)}
    assert_native_equals_plain(lambda: kernel(*inputs, rope, **options), inputs)


@pytest.mark.parametrize("kernel", [softmax_attention, linear_attention])
def test_a_text_of_padding_gets_zeros_and_finite_gradients(kernel):
    inputs, options = qkv(2, 4, HEADS, DIM), {"dropout": 0.2} if kernel is softmax_attention else {}
    mask = paddle.to_tensor([[True] * 4, [False] * 4])
    towards = tensor(*inputs[0].shape)
    for result in outputs_and_gradients(lambda: kernel(*inputs, None, mask, **options), inputs, towards):
        assert np.isfinite(result).all() and (result[1] == 0).all() and (result[0] != 0).any()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kernel", [softmax_attention, linear_attention])
def test_an_output_that_nobody_takes_is_freed(kernel):
    q = tensor(512, 64, 1, 32)  # 4 MB
    assert kept_without_backward(lambda: kernel(q, q, q)) < 1


def test_dropout_of_the_weights_is_that_of_the_plain_form_with_the_same_mask():
    seq = 12
    q, k = (tensor(1, seq, seq) for _ in range(2))
    # values that are the unit vectors: the output is the matrix of the weights
    unit, towards = paddle.eye(seq).unsqueeze(0), tensor(1, seq, seq)
    np.random.seed(3)
    mask = one_head(softmax_attention, q, k, unit, dropout=0.4).numpy() != 0
    v, scale = tensor(1, seq, seq), 1 / 0.6
    assert 0.4 < mask.mean() < 0.8

    def plain():
        weights = paddle.nn.functional.softmax(paddle.matmul(q, k, transpose_y=True) * seq**-0.5)
        return paddle.matmul(weights * paddle.to_tensor(mask.astype("float32")) * scale, v)

    np.random.seed(3)
    native = outputs_and_gradients(lambda: one_head(softmax_attention, q, k, v, dropout=0.4), [q, k, v], towards)
    for one, other in zip(native, outputs_and_gradients(plain, [q, k, v], towards)):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-5 * max(1, np.abs(other).max()))


def test_large_scores_and_subnormal_weights():
    q, k, v = tensor(1, 6, 4, scale=100), tensor(1, 6, 4, scale=100), tensor(1, 6, 4)
    native = one_head(softmax_attention, q, k, v).numpy()
    wide = [x.astype("float64").numpy()[0] for x in (q, k, v)]
    scores = wide[0] @ wide[1].T / 2
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(native[0], weights / weights.sum(axis=1, keepdims=True) @ wide[2], rtol=1e-3, atol=1e-4)


def test_weights_down_to_1e_20_of_the_largest_count_and_smaller_ones_are_0():
    scores = np.array([0, -20, -40, -45.5, -46.5, -60])
    counts = np.array([1, 1, 1, 1, 0, 0])
    q, k = np.zeros([2, 1, 6, 6], dtype="float32")
    q[..., 0], k[..., 0] = np.sqrt(6), scores  # scores are q k / sqrt(6)
    v = paddle.to_tensor(np.diag(np.exp(-scores)).astype("float32")).unsqueeze(0)
    v.stop_gradient = False
    out = one_head(softmax_attention, paddle.to_tensor(q), paddle.to_tensor(k), v)
    np.testing.assert_allclose(out.numpy(), np.tile(counts, (1, 6, 1)), rtol=1e-4)
    out.sum().backward()  # v gets the sum of its weights
    np.testing.assert_allclose(v.grad.numpy()[0, :, 0], 6 * np.exp(scores) * counts, rtol=1e-4)


@pytest.mark.parametrize("hidden_by", ["mask", "segments", "causal"])
def test_hidden_keys_get_nothing_however_small_the_other_scores(hidden_by):
    q, k = np.zeros([2, 1, 4, 4], dtype="float32")
    q[..., 0], k[..., 0], q[..., 1], k[..., 1] = 2.0**11, -(2.0**10), 2.0, [3, 0, 1, 2]
    scores = np.tile(-(2.0**20) + k[0, :, 1].astype("float64"), (4, 1))  # exact in float32, too
    sees = {
        "mask": np.array([[True, True, False, True]] * 4),
        "segments": np.array([[a == b for b in [0, 0, 1, 1]] for a in [0, 0, 1, 1]]),
        "causal": np.tril(np.ones([4, 4], dtype=bool)),
    }[hidden_by]
    options = {
        "mask": {"key_mask": paddle.to_tensor(sees[:1])},
        "segments": {"segment_ids": paddle.to_tensor([[0, 0, 1, 1]])},
        "causal": {"causal": True},
    }[hidden_by]
    q, k, v = (paddle.to_tensor(x) for x in (q, k, np.eye(4, dtype="float32")[None]))
    v.stop_gradient = False
    weights = np.where(sees, np.exp(scores - scores.max()), 0)
    weights /= weights.sum(axis=1, keepdims=True)
    out = one_head(softmax_attention, q, k, v, **options)
    np.testing.assert_allclose(out.numpy()[0], weights, rtol=1e-5, atol=1e-7)
    towards = tensor(1, 4, 4)
    (out * towards).sum().backward()
    # the sums of exponentials are kept as logarithms, of which the float32 numbers near -2^20 are 1/16 apart
    np.testing.assert_allclose(v.grad.numpy()[0], weights.T @ towards.numpy()[0], rtol=0.1, atol=0.1)


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("decay", [None, (0.1, 0.97)], ids=["", "decay"])
def test_features_that_hardly_overlap_are_bounded_as_in_the_plain_form(decay, causal):
    apart = paddle.to_tensor([30.0, -30.0]).tile([DIM // 2])
    every_other = (paddle.arange(150) % 2).astype("float32").reshape([-1, 1, 1])  # far from all keys
    q, k, v = inputs = qkv(2, 150, HEADS, DIM)
    mask, rope = paddle.to_tensor(np.arange(150) < np.array([[150], [130]])), RotaryPositionEmbedding(DIM).cos_sin(150)

    def attended():
        queries, keys = 10 * q + apart * every_other, 10 * k - apart
        return linear_attention(queries, keys, v, rope, mask, decay=decay, causal=causal)

    assert float(attended().abs().max()) > 8  # some are bounded: otherwise they are averages
    assert_native_equals_plain(attended, inputs)


@pytest.mark.parametrize("normalizer", ["unrotated", "none"])
@pytest.mark.parametrize("decay", [None, (1, 1, 0.9, 1, 1, 1), (0.5, 1, 1, 1, 1, 0.8)], ids=["none", "third", "outer"])
def test_heads_that_are_computed_together_do_not_mix(decay, normalizer):
    inputs = qkv(2, 150, 6, DIM)  # more heads than are taken together; others between them
    rope = RotaryPositionEmbedding(DIM).cos_sin(150)
    assert_native_equals_plain(
        lambda: linear_attention(*inputs, rope, normalizer=normalizer, decay=decay), inputs, tolerance=TOLERANCE
    )


def test_tiny_features_are_averaged_as_well_as_others():
    q = paddle.full([1, 40, 1, DIM], -35.5)  # features of 4e-16
    np.testing.assert_allclose(linear_attention(q, q, paddle.ones_like(q)).numpy(), 1, rtol=1e-5)


@pytest.mark.parametrize("lowest", [-60.0, -75.0], ids=["above the bound", "below the bound"])
def test_small_denominators_are_bounded_as_in_the_plain_form(lowest):
    q, k, v = inputs = qkv(1, 5, HEADS, DIM)
    with paddle.no_grad():
        q.set_value(q + lowest)
        v.set_value(paddle.exp(paddle.to_tensor(max(0.0, -70 - lowest))) * v)
    towards = paddle.ones(q.shape)
    found = outputs_and_gradients(lambda: linear_attention(*inputs), inputs, towards)
    with plain_forms():
        expected = outputs_and_gradients(lambda: linear_attention(*inputs), inputs, towards)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max())
    assert np.abs(found[0]).max() > 0.01


def test_root_mean_squares_of_small_numerators_are_bounded_as_in_the_plain_form():
    q, k, v = tensor(1, 5, HEADS, DIM, scale=0.1), tensor(1, 5, HEADS, DIM), tensor(1, 5, HEADS, DIM)
    q.set_value(q - 15.0)  # features of 3e-7
    assert_native_equals_plain(lambda: linear_attention(q, k, v, normalizer="none"), [q, k, v], tolerance=1e-4)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
def test_powers_of_the_decay_down_to_1e_30_count(causal):
    seq, gamma = 60, 0.3
    q, k, v = qkv(1, seq, DIM)
    distances = np.arange(seq)[::-1].reshape(1, seq, 1)  # to the last token, where all values count alike
    v.set_value((np.abs(v.numpy()) * gamma ** -np.minimum(distances, 50.0)).astype("float32"))
    options = {"decay": [gamma], "causal": causal}
    found = one_head(linear_attention, q, k, v, **options).numpy()[0, -1]
    with plain_forms():
        expected = one_head(linear_attention, q, k, v, **options).numpy()[0, -1]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


SEGMENTS = {"segment_ids": paddle.to_tensor([[0, 0, 0, 0, 1, 1, 1], [2, 2, 3, 3, 3, 3, 3]])}
BIAS = {"score_bias": paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 2, 7, 7)), dtype="float32")}
LEFT_TO_PLAIN = {
    "score bias": ({}, BIAS, {}),
    "segments of linear attention": ({"kind": "linear"}, SEGMENTS, {}),
    "window": ({"kind": "window", "window": 1}, {}, {}),
    "feature map": ({"kind": "linear", "feature_map": relu}, {}, {}),
    "rotated denominator": ({"kind": "linear", "normalizer": "rotated"}, {}, {}),
    "trained decay": ({"kind": "linear", "decay": paddle.to_tensor([0.5, 0.9])}, {}, {}),
    "partial RoPE": ({}, {}, {"rotary_dim": 4}),
    "learned RoPE": ({}, {}, {"learned": True}),
    **{
        f"{placement} of {kind}": ({"kind": kind, "placement": placement}, {}, {})
        for placement in ("q", "k", "v", "qkv", "qkvo")
        for kind in ("softmax", "linear")
    },
}


@pytest.mark.parametrize("name", LEFT_TO_PLAIN)
def test_options_without_a_native_form_give_what_they_give_in_plain_forms(name):
    options, arguments, rotary = LEFT_TO_PLAIN[name]
    layer, hidden = MultiHeadAttention(16, 2, **options), tensor(2, 7, 16, scale=2.0)
    rotary = RotaryPositionEmbedding(8, base=2.0, **rotary)
    mask = paddle.to_tensor(np.arange(7) < np.array([[7], [5]]))

    def attended():
        return layer(hidden, rotary.cos_sin(7), mask, **arguments)

    def plain():
        with plain_forms():
            return attended()

    assert_same(attended, plain, [hidden])
