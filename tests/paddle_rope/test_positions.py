"""Sinusoidal and learned positions, and ALiBi."""

import numpy as np
import paddle
import pytest
from paddle.static import InputSpec

from paddle_rope import (
    LearnedPositionEmbedding,
    alibi_bias,
    alibi_slopes,
    sinusoidal_embedding,
)
from tests.helpers.comparison import assert_close


def embedded(positions):
    return sinusoidal_embedding(positions, 64)


@pytest.mark.equation("4.10")
def test_sinusoidal_positions_are_those_of_the_equation_up_to_a_million_also_in_static_graphs():
    positions, specs = np.array([0, 1, 7, 511, 65_537, 1_000_000]), [InputSpec([None], "int64")]
    static = paddle.jit.to_static(embedded, input_spec=specs, full_graph=True)
    phases = positions[:, np.newaxis] / 10000 ** (np.arange(0, 64, 2) / 64)
    for found in (embedded(paddle.to_tensor(positions)), static(paddle.to_tensor(positions))):
        assert found.dtype == paddle.float32
        assert_close(found, np.stack([np.sin(phases), np.cos(phases)], axis=-1).reshape(6, 64), 1e-6)


@pytest.mark.equation("4.11")
def test_learned_positions_are_rows_of_the_table_and_trained():
    layer, positions = LearnedPositionEmbedding(7, 4), paddle.to_tensor([[0, 3, 3], [6, 1, 0]])
    output = layer(positions)
    np.testing.assert_array_equal(output.numpy(), layer.weight.numpy()[positions.numpy()])
    output.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy()[:, 0], [2, 1, 0, 2, 0, 0, 1])
    for position in (7, -1, 4096):
        with pytest.raises(ValueError, match=rf"from 0 to 6, got .*{position}.*cut the text"):
            layer(paddle.to_tensor([[0, position]]))


@pytest.mark.equation("4.13")
@pytest.mark.parametrize("heads, below", [(1, 1), (8, 8), (16, 16), (3, 2), (6, 4), (12, 8), (20, 16)])
def test_slopes_are_geometric_and_other_numbers_of_heads_take_every_other_one_of_the_next_power_of_two(heads, below):
    slopes = alibi_slopes(heads)
    np.testing.assert_allclose(slopes[:below], 2.0 ** (-8 * np.arange(1, below + 1) / below), rtol=1e-12)
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
