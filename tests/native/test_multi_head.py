"""Multi-head attention: options that no native operator has are left to the plain form."""

import numpy as np
import paddle
import pytest

from paddle_rope import MultiHeadAttention, RotaryPositionEmbedding
from paddle_rope.attention import relu
from paddle_rope.native.library import plain_forms
from tests.native.comparison import assert_same, tensor

SEGMENTS = {"segment_ids": paddle.to_tensor([[0, 0, 0, 0, 1, 1, 1], [2, 2, 3, 3, 3, 3, 3]])}
BIAS = {"score_bias": paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 2, 7, 7)), dtype="float32")}
CASES = {
    "score bias": ({}, BIAS),
    "segments of softmax": ({}, SEGMENTS),
    "window": ({"kind": "window", "window": 1}, {}),
    "segments of linear attention": ({"kind": "linear"}, SEGMENTS),
    "feature map": ({"kind": "linear", "feature_map": relu}, {}),
    "rotated denominator": ({"kind": "linear", "normalizer": "rotated"}, {}),
    **{
        f"{placement} of {kind}": ({"kind": kind, "placement": placement}, {})
        for placement in ("q", "k", "v", "qkv", "qkvo")
        for kind in ("softmax", "linear")
    },
}


@pytest.mark.parametrize("name", CASES)
def test_every_option_gives_what_it_gives_in_plain_forms(name):
    options, arguments = CASES[name]
    layer = MultiHeadAttention(16, 2, **options)
    hidden, rotate = tensor(2, 7, 16, scale=2.0), RotaryPositionEmbedding(8, base=2.0).at(None)
    mask = paddle.to_tensor(np.arange(7) < np.array([[7], [5]]))

    def plain():
        with plain_forms():
            return layer(hidden, rotate, mask, **arguments)

    assert_same(lambda: layer(hidden, rotate, mask, **arguments), plain, [hidden])
