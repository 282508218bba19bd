"""What docs/results/experiments.md says of the output norm: it is linear attention without a denominator."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, linear_attention
from paddle_rope.attention.feature_maps import elu_plus_one, exp
from paddle_rope.layers import RMSNorm


@pytest.mark.parametrize("phi", [elu_plus_one, exp])
@pytest.mark.parametrize("causal", [False, True])
def test_norm_of_the_divided_output_is_the_output_without_a_denominator(causal, phi):
    q, k, v = (paddle.to_tensor(np.random.standard_normal((2, 7, 3, 4))) for _ in "qkv")
    rope, options = RotaryPositionEmbedding(4).cos_sin(7, dtype="float64"), {"feature_map": phi, "causal": causal}
    divided = RMSNorm(1e-12)(linear_attention(q, k, v, rope, normalizer="unrotated", **options))
    alone = linear_attention(q, k, v, rope, normalizer="none", **options)
    np.testing.assert_allclose(divided.numpy(), alone.numpy(), atol=1e-6)
