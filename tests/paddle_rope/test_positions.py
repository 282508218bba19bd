"""Sinusoidal and learned positions, ALiBi, positions with gaps."""

import math

import numpy as np
import paddle
import pytest
from paddle.static import InputSpec

from paddle_rope import (
    LearnedPositionEmbedding,
    RotaryPositionEmbedding,
    alibi_bias,
    alibi_slopes,
    reference,
    sinusoidal_embedding,
    softmax_attention,
)


@pytest.mark.equation("4.10")
def test_sinusoidal_positions_are_those_of_the_equation_up_to_a_million():
    positions = [0, 1, 7, 511, 1_000_000, 2.5]
    embedding = sinusoidal_embedding(paddle.to_tensor(positions, dtype="float64"), 6).numpy()
    assert embedding.dtype == np.float32 and embedding.shape == (6, 6)
    for row, m in zip(embedding, positions):
        for i in range(3):
            angle = m / 10000 ** (2 * i / 6)
            assert abs(row[2 * i] - math.sin(angle)) < 1e-6
            assert abs(row[2 * i + 1] - math.cos(angle)) < 1e-6


def test_sinusoidal_positions_in_saved_graphs_are_right_at_a_million(tmp_path):
    class Sinusoidal(paddle.nn.Layer):
        def forward(self, positions):
            return sinusoidal_embedding(positions, 64)

    static = paddle.jit.to_static(Sinusoidal(), input_spec=[InputSpec([None], "int64")], full_graph=True)
    paddle.jit.save(static, str(tmp_path / "layer"))
    positions = np.array([3, 65_537, 1_000_000])
    phases = positions[:, np.newaxis] / 10000 ** (np.arange(0, 64, 2) / 64)
    expected = np.stack([np.sin(phases), np.cos(phases)], axis=-1).reshape(3, 64)
    saved = paddle.jit.load(str(tmp_path / "layer"))(paddle.to_tensor(positions)).numpy()
    np.testing.assert_allclose(saved, expected, rtol=0, atol=1e-6)


@pytest.mark.equation("4.10")
def test_sinusoidal_positions_see_a_shift_as_a_rotation():
    # (sin, cos) at m + s is (sin, cos) at m turned by s theta: the same angles as RoPE's
    positions = paddle.arange(9).unsqueeze(0)
    here, there = sinusoidal_embedding(positions, 8), sinusoidal_embedding(positions + 5, 8)
    swapped = here.reshape([1, 9, 4, 2]).flip(-1).reshape([1, 9, 8])  # (cos, sin), which RoPE turns forward
    turned = RotaryPositionEmbedding(8)(swapped, positions=paddle.full([9], 5))
    np.testing.assert_allclose(turned.reshape([1, 9, 4, 2]).flip(-1).reshape([1, 9, 8]).numpy(), there, atol=1e-6)


@pytest.mark.equation("4.11")
def test_learned_positions_are_rows_of_the_table_and_trained():
    layer = LearnedPositionEmbedding(7, 4)
    positions = paddle.to_tensor([[0, 3, 3], [6, 1, 0]])
    output = layer(positions)
    np.testing.assert_array_equal(output.numpy(), layer.weight.numpy()[positions.numpy()])
    output.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy()[:, 0], [2, 1, 0, 2, 0, 0, 1])


@pytest.mark.equation("4.11")
@pytest.mark.parametrize("position", [7, -1, 4096])
def test_beyond_the_learned_positions_is_an_error_that_names_the_limit(position):
    with pytest.raises(ValueError, match=rf"from 0 to 6, got .*{position}.*max_position_embeddings"):
        LearnedPositionEmbedding(7, 4)(paddle.to_tensor([[0, position]]))


@pytest.mark.equation("4.13")
def test_slopes_of_powers_of_two_are_the_geometric_sequence_of_the_paper():
    assert alibi_slopes(8) == [2.0**-power for power in range(1, 9)]
    assert alibi_slopes(1) == [2.0**-8]
    np.testing.assert_allclose(alibi_slopes(16), 2.0 ** (-np.arange(1, 17) / 2), rtol=1e-12)


@pytest.mark.equation("4.13")
@pytest.mark.parametrize("heads, below", [(3, 2), (6, 4), (12, 8), (20, 16)])
def test_other_numbers_of_heads_take_every_other_slope_of_the_next_power_of_two(heads, below):
    slopes = alibi_slopes(heads)
    assert slopes[:below] == alibi_slopes(below)
    np.testing.assert_allclose(slopes[below:], alibi_slopes(2 * below)[0::2][: heads - below], rtol=1e-12)
    assert len(set(slopes)) == heads and all(0 < slope < 1 for slope in slopes)


@pytest.mark.equation("4.12")
def test_the_bias_is_symmetric_and_falls_with_the_distance():
    positions = paddle.to_tensor([[0, 1, 2, 3], [0, 0, 1, 2]])
    bias = alibi_bias([0.5, 0.25], positions, positions).numpy()
    assert bias.shape == (2, 2, 4, 4) and bias.dtype == np.float32
    np.testing.assert_array_equal(bias, bias.transpose(0, 1, 3, 2))
    np.testing.assert_array_equal(bias[0, 0, 0], [0, -0.5, -1, -1.5])
    np.testing.assert_array_equal(bias[1, 1, 3], [-0.5, -0.5, -0.25, 0])


@pytest.mark.equation("4.12")
@pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])
def test_attention_with_alibi_equals_the_reference_with_gradients(causal):
    q, k, v = qkv = [paddle.to_tensor(np.random.standard_normal((2, 5, 3, 4)), stop_gradient=False) for _ in range(3)]
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=bool)
    positions = paddle.arange(5).unsqueeze(0)
    slopes = alibi_slopes(3)
    output = softmax_attention(
        q, k, v, None, paddle.to_tensor(mask), causal=causal, score_bias=alibi_bias(slopes, positions, positions)
    )
    expected = reference.softmax_attention(*qkv, None, mask, causal=causal, slopes=slopes)
    np.testing.assert_allclose(output.numpy(), expected.numpy(), rtol=0, atol=1e-8)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((output * towards).sum(), qkv)
    for gradient, exact in zip(gradients, paddle.grad((expected * towards).sum(), qkv)):
        np.testing.assert_allclose(gradient.numpy(), exact.numpy(), rtol=0, atol=1e-7)


@pytest.mark.equation("4.12")
def test_attention_with_alibi_does_not_see_a_shift_of_all_positions():
    q, k, v = (paddle.to_tensor(np.random.standard_normal((1, 6, 2, 4))) for _ in range(3))
    positions = paddle.arange(6).unsqueeze(0)
    here, there = (
        softmax_attention(q, k, v, score_bias=alibi_bias(alibi_slopes(2), shifted, shifted)).numpy()
        for shifted in (positions, positions + 1000)
    )
    np.testing.assert_array_equal(here, there)
