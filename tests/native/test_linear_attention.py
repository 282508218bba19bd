"""Linear attention by chunks in C++ against its plain forms."""

import sys

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, causal_linear_attention, linear_attention
from paddle_rope.native.library import plain_forms
from paddle_rope.native.linear_attention import native_linear_attention
from tests.native.comparison import assert_same, kept_without_backward, outputs_and_gradients, tensor
from tests.pairwise import pairwise

HEADS, DIM = 2, 8


def plainly(q, k, v, *arguments, causal=False, heads=HEADS, **options):
    def by_heads(x):
        return x.reshape([0, 0, heads, -1]).transpose([0, 2, 1, 3])

    form = causal_linear_attention if causal else linear_attention
    with plain_forms():
        attended = form(by_heads(q), by_heads(k), by_heads(v), *arguments, **options)
        return attended.transpose([0, 2, 1, 3]).reshape(q.shape)


@pairwise(
    {
        "layout": [None, "interleaved", "half"],
        "seq": [1, 7, 300],  # of one chunk and of three, the last one shorter
        "normalizer": ["unrotated", "none"],
        "decay": [None, (0.1, 0.97)],
        "causal": [False, True],
    }
)
def test_attention_equals_the_plain_form(layout, normalizer, decay, causal, seq):
    q, k, v = (tensor(2, seq, HEADS * DIM) for _ in range(3))
    mask = paddle.to_tensor(np.arange(seq) < np.array([[seq], [max(1, seq - 2)]]))
    rotate = layout and RotaryPositionEmbedding(DIM, layout=layout).at(None)
    options = {"normalizer": normalizer, "decay": decay, "causal": causal}
    assert native_linear_attention(q, k, v, HEADS, rotate, mask, **options) is not None
    assert_same(
        lambda: native_linear_attention(q, k, v, HEADS, rotate, mask, **options),
        lambda: plainly(q, k, v, rotate, mask, **options),
        [q, k, v],
        tolerance=2e-4,  # float32 sums in another order; the root mean square of a small numerator enlarges them
    )


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("decay", [None, (0.1, 0.97)], ids=["", "decay"])
def test_features_that_hardly_overlap_are_bounded_as_in_the_plain_form(decay, causal):
    apart = paddle.to_tensor([30.0, -30.0]).tile([HEADS * DIM // 2])
    at_query = apart * (paddle.arange(150) % 2).astype("float32").unsqueeze(-1)  # every other one is far from all keys
    q, k, v = (tensor(2, 150, HEADS * DIM) for _ in range(3))
    mask, rotate = paddle.to_tensor(np.arange(150) < np.array([[150], [130]])), RotaryPositionEmbedding(DIM).at(None)
    options = {"decay": decay, "causal": causal}
    native, plain = (
        lambda: native_linear_attention(10 * q + at_query, 10 * k - apart, v, HEADS, rotate, mask, **options),
        lambda: plainly(10 * q + at_query, 10 * k - apart, v, rotate, mask, **options),
    )
    assert float(native().abs().max()) > 8  # some are bounded: otherwise they are averages
    assert_same(native, plain, [q, k, v], tolerance=2e-4)


@pytest.mark.parametrize("normalizer", ["unrotated", "none"])
@pytest.mark.parametrize("decay", [None, (1, 1, 0.9, 1, 1, 1), (0.5, 1, 1, 1, 1, 0.8)], ids=["none", "third", "outer"])
def test_heads_that_are_computed_together_do_not_mix(decay, normalizer):
    heads, options = 6, {"normalizer": normalizer, "decay": decay}  # more than are taken together; others between them
    q, k, v = (tensor(2, 150, heads * DIM) for _ in range(3))
    rotate = RotaryPositionEmbedding(DIM).at(None)
    assert_same(
        lambda: native_linear_attention(q, k, v, heads, rotate, **options),
        lambda: plainly(q, k, v, rotate, heads=heads, **options),
        [q, k, v],
        tolerance=2e-4,
    )


@pytest.mark.parametrize("shape", [[3, 10], [1, 10], [10]], ids=["of each text", "of all, one row", "of all"])
def test_positions_equal_the_plain_form(shape):
    q, k, v = (tensor(3, 10, HEADS * DIM) for _ in range(3))
    rotate = RotaryPositionEmbedding(DIM).at(paddle.to_tensor(np.random.randint(0, 50, shape)))
    assert_same(lambda: native_linear_attention(q, k, v, HEADS, rotate), lambda: plainly(q, k, v, rotate), [q, k, v])


def test_tiny_features_are_averaged_as_well_as_others():
    q = paddle.full([1, 40, DIM], -35.5)  # features of 4e-16
    np.testing.assert_allclose(native_linear_attention(q, q, paddle.ones_like(q), 1).numpy(), 1, rtol=1e-5)


def test_a_text_of_padding_gets_zeros_and_finite_gradients():
    q, k, v = (tensor(2, 4, HEADS * DIM) for _ in range(3))
    mask = paddle.to_tensor([[True] * 4, [False] * 4])
    towards = tensor(*q.shape)
    results = outputs_and_gradients(lambda: native_linear_attention(q, k, v, HEADS, None, mask), [q, k, v], towards)
    for result in results:
        assert np.isfinite(result).all() and (result[1] == 0).all() and (result[0] != 0).any()


@pytest.mark.parametrize("lowest", [-60.0, -75.0], ids=["above the bound", "below the bound"])
def test_small_denominators_are_bounded_as_in_the_plain_form(lowest):
    q, k, v = (tensor(1, 5, HEADS * DIM) for _ in range(3))
    with paddle.no_grad():
        q.set_value(q + lowest)
        v.set_value(paddle.exp(paddle.to_tensor(max(0.0, -70 - lowest))) * v)
    found = outputs_and_gradients(lambda: native_linear_attention(q, k, v, HEADS), [q, k, v], paddle.ones(q.shape))
    expected = outputs_and_gradients(lambda: plainly(q, k, v), [q, k, v], paddle.ones(q.shape))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max())
    assert np.abs(found[0]).max() > 0.01


def test_root_mean_squares_of_small_numerators_are_bounded_as_in_the_plain_form():
    q, k, v = tensor(1, 5, HEADS * DIM, scale=0.1), tensor(1, 5, HEADS * DIM), tensor(1, 5, HEADS * DIM)
    q.set_value(q - 15.0)  # features of 3e-7
    assert_same(
        lambda: native_linear_attention(q, k, v, HEADS, normalizer="none"),
        lambda: plainly(q, k, v, normalizer="none"),
        [q, k, v],
        tolerance=1e-4,
    )


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
def test_powers_of_the_decay_down_to_1e_30_count(causal):
    seq, gamma = 60, 0.3
    q, k, v = (tensor(1, seq, DIM) for _ in range(3))
    distances = np.arange(seq)[::-1].reshape(1, seq, 1)  # to the last token, where all values count alike
    v.set_value((np.abs(v.numpy()) * gamma ** -np.minimum(distances, 50.0)).astype("float32"))
    options = {"decay": [gamma], "causal": causal}
    found = native_linear_attention(q, k, v, 1, **options).numpy()[0, -1]
    np.testing.assert_allclose(found, plainly(q, k, v, heads=1, **options).numpy()[0, -1], rtol=1e-3)


def test_a_rotated_denominator_is_left_to_the_plain_form():
    q = tensor(1, 3, DIM)
    assert native_linear_attention(q, q, q, 1, normalizer="rotated") is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_output_that_nobody_takes_is_freed():
    q = tensor(1, 2**15, 32)  # 4 MB
    assert kept_without_backward(lambda: native_linear_attention(q, q, q, 1)) < 1
