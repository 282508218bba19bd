"""Softmax attention in blocks against its plain form."""

import sys

import numpy as np
import paddle
import pytest

from paddle_rope import LinearScaling, RotaryPositionEmbedding, YaRNScaling, softmax_attention
from paddle_rope.native.library import library, plain_forms
from paddle_rope.native.softmax_attention import native_softmax_attention
from tests.native.comparison import assert_same, kept_without_backward, outputs_and_gradients, tensor
from tests.pairwise import pairwise

HEADS, DIM = 2, 8


def by_heads(x):
    return x.reshape([0, 0, HEADS, -1]).transpose([0, 2, 1, 3])


def plainly(q, k, v, *options, **more):
    with plain_forms():
        attended = softmax_attention(by_heads(q), by_heads(k), by_heads(v), *options, **more)
        return attended.transpose([0, 2, 1, 3]).reshape(q.shape)


ROTARIES = {
    "none": lambda: None,
    "interleaved": lambda: RotaryPositionEmbedding(DIM),
    "half": lambda: RotaryPositionEmbedding(DIM, layout="half", scaling=LinearScaling(2.0)),
    "YaRN": lambda: RotaryPositionEmbedding(DIM, scaling=YaRNScaling(4.0, 32)),
}


@pairwise({"name": list(ROTARIES), "seq": [1, 5, 300], "causal": [False, True]})
def test_attention_equals_the_plain_form(name, causal, seq):
    q, k, v = (tensor(2, seq, HEADS * DIM) for _ in range(3))
    rotary, mask = ROTARIES[name](), paddle.to_tensor(np.arange(seq) < np.array([[seq], [max(1, seq - 2)]]))
    rotate = None if rotary is None else rotary.at(None)
    native = native_softmax_attention(q, k, v, HEADS, rotate, mask, causal=causal)
    assert native is not None
    assert_same(
        lambda: native_softmax_attention(q, k, v, HEADS, rotate, mask, causal=causal),
        lambda: plainly(q, k, v, rotary, mask, causal=causal),
        [q, k, v],
    )


@pytest.mark.parametrize("shape", [[3, 10], [1, 10], [10]], ids=["of each text", "of all, one row", "of all"])
def test_positions_and_segments_equal_the_plain_form(shape):
    q, k, v = (tensor(3, 10, HEADS * DIM) for _ in range(3))
    positions = paddle.to_tensor(np.random.randint(0, 50, shape))
    segments = paddle.to_tensor(np.sort(np.random.randint(0, 3, [3, 10]), axis=1).astype("int32"))
    rotary = RotaryPositionEmbedding(DIM)
    assert_same(
        lambda: native_softmax_attention(q, k, v, HEADS, rotary.at(positions), segment_ids=segments),
        lambda: plainly(q, k, v, rotary.at(positions), segment_ids=segments),
        [q, k, v],
    )


def test_a_text_of_padding_gets_zeros_and_finite_gradients():
    q, k, v = (tensor(2, 4, HEADS * DIM) for _ in range(3))
    mask = paddle.to_tensor([[True] * 4, [False] * 4])
    results = outputs_and_gradients(
        lambda: native_softmax_attention(q, k, v, HEADS, None, mask, 0.2), [q, k, v], tensor(*q.shape)
    )
    for result in results:
        assert np.isfinite(result).all() and (result[1] == 0).all() and (result[0] != 0).any()


def test_dropout_of_the_weights_is_that_of_the_plain_form_with_the_same_mask():
    seq = 12
    q, k = (tensor(1, seq, seq) for _ in range(2))  # one head
    # values that are the unit vectors: the output is the matrix of the weights
    unit, towards = paddle.eye(seq).unsqueeze(0), tensor(1, seq, seq)
    np.random.seed(3)
    mask = native_softmax_attention(q, k, unit, 1, None, None, 0.4).numpy() != 0
    v, scale = tensor(1, seq, seq), 1 / 0.6
    assert 0.4 < mask.mean() < 0.8

    def plain():
        weights = paddle.nn.functional.softmax(paddle.matmul(q, k, transpose_y=True) * seq**-0.5)
        return paddle.matmul(weights * paddle.to_tensor(mask.astype("float32")) * scale, v)

    np.random.seed(3)
    native = outputs_and_gradients(lambda: native_softmax_attention(q, k, v, 1, p=0.4), [q, k, v], towards)
    for one, other in zip(native, outputs_and_gradients(plain, [q, k, v], towards)):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-5 * max(1, np.abs(other).max()))


def test_large_scores_and_subnormal_weights():
    q, k, v = tensor(1, 6, 4, scale=100), tensor(1, 6, 4, scale=100), tensor(1, 6, 4)
    native = native_softmax_attention(q, k, v, 1).numpy()
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
    out = native_softmax_attention(paddle.to_tensor(q), paddle.to_tensor(k), v, 1)
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
    out = native_softmax_attention(q, k, v, 1, **options)
    np.testing.assert_allclose(out.numpy()[0], weights, rtol=1e-5, atol=1e-7)
    towards = tensor(1, 4, 4)
    (out * towards).sum().backward()
    # the sums of exponentials are kept as logarithms, of which the float32 numbers near -2^20 are 1/16 apart
    np.testing.assert_allclose(v.grad.numpy()[0], weights.T @ towards.numpy()[0], rtol=0.1, atol=0.1)


@pytest.mark.parametrize(
    "rotary", [RotaryPositionEmbedding(DIM, rotary_dim=4), RotaryPositionEmbedding(DIM, learned=True)]
)
def test_rotations_without_tables_are_left_to_the_plain_form(rotary):
    q = tensor(1, 3, DIM)
    assert library() is not None and native_softmax_attention(q, q, q, 1, rotary.at(None)) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_output_that_nobody_takes_is_freed():
    q = tensor(512, 64, 32)  # 4 MB
    assert kept_without_backward(lambda: native_softmax_attention(q, q, q, 1)) < 1
