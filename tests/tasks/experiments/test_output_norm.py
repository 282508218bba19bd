"""What docs/results/experiments.md says of the output norm: it is linear attention without a denominator."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, linear_attention
from paddle_rope.attention.feature_maps import elu_plus_one, exp
from paddle_rope.layers import RMSNorm
from tests.paddle_rope.roformer.small_models import randomise


@pytest.mark.parametrize("phi", [elu_plus_one, exp])
@pytest.mark.parametrize("causal", [False, True])
def test_norm_of_the_divided_output_is_the_output_without_a_denominator(causal, phi):
    q, k, v = (paddle.to_tensor(np.random.standard_normal((2, 7, 3, 4))) for _ in "qkv")
    rope, options = RotaryPositionEmbedding(4).cos_sin(7, dtype="float64"), {"feature_map": phi, "causal": causal}
    divided = RMSNorm(1e-12)(linear_attention(q, k, v, rope, normalizer="unrotated", **options))
    alone = linear_attention(q, k, v, rope, normalizer="none", **options)
    np.testing.assert_allclose(divided.numpy(), alone.numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_without_rope_an_encoder_with_mean_pooling_does_not_see_the_order(kind):
    from paddle_rope.roformer import RoFormerForSequenceClassification, SequenceClassificationConfig

    sizes = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    ids = np.random.randint(0, 20, [1, 12])
    shuffled = ids[:, np.random.permutation(12)]
    differences = {}
    for position_embedding in ("none", "qk"):
        config = SequenceClassificationConfig(
            **sizes, intermediate_size=16, attention=kind, pooling="mean", position_embedding=position_embedding
        )
        model = randomise(RoFormerForSequenceClassification(config), 0.5)
        outputs = [model(paddle.to_tensor(tokens)).numpy() for tokens in (ids, shuffled)]
        differences[position_embedding] = np.abs(outputs[0] - outputs[1]).max()
    assert differences["none"] < 1e-5 < 1e-3 < differences["qk"]
