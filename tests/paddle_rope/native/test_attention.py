"""Native attention beyond the contract of the kernels: long texts, several heads, bounds, other options."""

import numpy as np
import paddle
import pytest

from paddle_rope import LinearScaling, MultiHeadAttention, RotaryPositionEmbedding, YaRNScaling, linear_attention
from paddle_rope.attention.feature_maps import relu
from paddle_rope.native.dispatch import plain_forms
from tests.helpers.comparison import assert_close, assert_same, is_native, random_tensor
from tests.helpers.pairwise import pairwise
from tests.paddle_rope.attention.kernels import KERNELS

HEADS, DIM = 2, 8
ROTARIES = {
    "none": None,
    "interleaved": RotaryPositionEmbedding(DIM),
    "half": RotaryPositionEmbedding(DIM, layout="half", scaling=LinearScaling(2.0)),
    "YaRN": RotaryPositionEmbedding(DIM, scaling=YaRNScaling(4.0, 32)),
}
# float32 sums in another order; the root mean square of a small numerator enlarges them
TOLERANCE = 3e-4


def qkv(*shape):
    return [random_tensor(*shape, dtype="float32") for _ in range(3)]


def assert_native_equals_plain(attend, inputs, tolerance=TOLERANCE, least=0.0):
    found = attend()
    with plain_forms():
        expected = attend()
    assert is_native(found) and not is_native(expected) and float(found.abs().max()) > least
    assert_same(found, expected, inputs, atol=tolerance)


@pairwise(
    {
        "name": [name for name, kernel in KERNELS.items() if kernel.native],
        "rotary": list(ROTARIES),
        "positions": ["counted", "of each text", "of all, one row", "of all"],
        "seq": [7, 300],  # of one chunk and of several
    }
)
def test_long_texts_at_any_positions_equal_the_plain_form(name, rotary, positions, seq):
    inputs, rope = qkv(2, seq, HEADS, DIM), None
    if ROTARIES[rotary] is not None:
        shape = {"of each text": [2, seq], "of all, one row": [1, seq], "of all": [seq]}.get(positions)
        given = seq if shape is None else paddle.to_tensor(np.random.randint(0, 500, shape))
        rope = ROTARIES[rotary].cos_sin(given)
    mask = paddle.to_tensor(np.arange(seq) < np.array([[seq], [seq - 2]]))
    assert_native_equals_plain(lambda: KERNELS[name](*inputs, rope, key_mask=mask), inputs)


@pytest.mark.parametrize("normalizer", ["unrotated", "none"])
@pytest.mark.parametrize("decay", [None, (1, 1, 0.9, 1, 1, 1), (0.5, 1, 1, 1, 1, 0.8)], ids=["none", "third", "outer"])
def test_heads_that_are_computed_together_do_not_mix(decay, normalizer):
    inputs = qkv(2, 150, 6, DIM)  # more heads than are taken together; others between them
    rope = RotaryPositionEmbedding(DIM).cos_sin(150)
    assert_native_equals_plain(lambda: linear_attention(*inputs, rope, normalizer=normalizer, decay=decay), inputs)


@pytest.mark.parametrize("lowest", [-60.0, -75.0], ids=["above the bound", "below the bound"])
def test_small_denominators_and_root_mean_squares_are_bounded_as_in_the_plain_form(lowest):
    inputs = q, k, v = qkv(1, 5, HEADS, DIM)
    few, many = q + lowest, float(np.exp(max(0.0, -70 - lowest))) * v
    assert_native_equals_plain(lambda: linear_attention(few, k, many), inputs, 1e-3, least=0.01)
    small = 0.1 * q - 15.0  # features of 3e-7
    assert_native_equals_plain(lambda: linear_attention(small, k, v, normalizer="none"), inputs, 1e-4)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
def test_powers_of_the_decay_down_to_1e_30_count(causal):
    seq, gamma = 60, 0.3
    q, k, v = qkv(1, seq, 1, DIM)
    distances = np.arange(seq)[::-1].reshape(1, seq, 1, 1)  # to the last token, where all values count alike
    v.set_value((np.abs(v.numpy()) * gamma ** -np.minimum(distances, 50.0)).astype("float32"))
    options = {"decay": [gamma], "causal": causal}
    found = linear_attention(q, k, v, **options).numpy()[0, -1]
    with plain_forms():
        expected = linear_attention(q, k, v, **options).numpy()[0, -1]
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
}


@pytest.mark.parametrize("name", LEFT_TO_PLAIN)
def test_options_without_a_native_form_give_what_they_give_in_plain_forms(name):
    options, arguments, rotary = LEFT_TO_PLAIN[name]
    layer, hidden = MultiHeadAttention(16, 2, **options), random_tensor(2, 7, 16, dtype="float32", scale=2.0)
    rope = RotaryPositionEmbedding(8, base=2.0, **rotary).cos_sin(7)
    mask = paddle.to_tensor(np.arange(7) < np.array([[7], [5]]))
    found = layer(hidden, rope, mask, **arguments)
    with plain_forms():
        assert_close(found, layer(hidden, rope, mask, **arguments), TOLERANCE)
