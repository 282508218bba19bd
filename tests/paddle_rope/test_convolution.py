"""Short depthwise convolutions: against the loops, with padding, packing, from a cache and in static graphs."""

import numpy as np
import paddle
import pytest

from paddle_rope import RoFormerConfig, reference
from paddle_rope.convolution import DepthwiseConvolution
from tests.helpers.comparison import assert_close, assert_same, random_tensor, randomize
from tests.helpers.pairwise import pairwise

SEGMENTS = np.array([[3, 3, 3, -1, -1, 8, 0], [5] * 7])
MASK = np.array([[1, 1, 0, 1, 1, 0, 1], [1, 1, 1, 1, 1, 0, 0]], dtype=bool)


@pytest.mark.equation("5.5")
@pairwise({"size": [1, 2, 3, 5, 15], "causal": [False, True], "masked": [False, True], "packed": [False, True]})
def test_outputs_and_gradients_equal_the_loops(size, causal, masked, packed):
    size = size + 1 if size % 2 == 0 and not causal else size
    layer, x = randomize(DepthwiseConvolution(4, size, causal=causal), "float64"), random_tensor(2, 7, 4)
    mask, segments = MASK if masked else None, SEGMENTS if packed else None
    given = [None if one is None else paddle.to_tensor(one) for one in (mask, segments)]
    expected = reference.depthwise_convolution(x, layer.weight, mask, segments, causal)
    assert_same(layer(x, *given), expected, [x, layer.weight], atol=1e-12)
    other = x.clone()
    other[0, 2] = other[0, 5] = other[1, 5:] = 1e6  # at padding
    if masked:
        np.testing.assert_array_equal(layer(other, *given).numpy()[MASK], layer(x, *given).numpy()[MASK])
    if causal and not packed:
        cache, outputs = None, []
        for start, end in ((0, 1), (1, 2), (2, 6), (6, 7)):
            new = None if mask is None else given[0][:, start:end]
            y, cache = layer.forward_with_cache(x[:, start:end], cache, new)
            outputs.append(y)
        assert_close(paddle.concat(outputs, axis=1), expected, 1e-12)


@pytest.mark.equation("5.7")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("center", [0.0, 2.5])
def test_without_training_it_gives_its_center(center, causal):
    x, layer = random_tensor(2, 5, 4, dtype="float32"), DepthwiseConvolution(4, 5, center, causal)
    np.testing.assert_array_equal(layer(x).numpy(), center * x.numpy())
    _, gradient = paddle.grad((layer(x) ** 2 + layer(x)).sum(), [x, layer.weight])
    assert (gradient.numpy() != 0).all()


def test_sizes_without_a_middle_and_options_that_are_no_truth_value_are_refused():
    for size in (4, 0, -1):
        with pytest.raises(ValueError, match=f"size must be odd and positive, got {size}"):
            DepthwiseConvolution(8, size)
    with pytest.raises(ValueError, match="convolutions must be true or false"):
        RoFormerConfig(convolutions=["value"])
