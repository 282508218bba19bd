"""Multi-head attention: where the heads are, what goes to the kernel, and what goes on from a cache."""

import copy

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_rope import MultiHeadAttention, RotaryPositionEmbedding
from paddle_rope.layers import DepthwiseConvolution
from tests.helpers.comparison import assert_close, assert_same, random_tensor, randomize
from tests.helpers.pairwise import pairwise
from tests.paddle_rope import reference

ROTARY = RotaryPositionEmbedding(6)


def random_layer(kind, **options):
    layer = randomize(MultiHeadAttention(12, 2, kind, **{"window": 2, **options}), scale=0.5)
    layer.eval()
    return layer


def random_hidden(batch=2):
    return random_tensor(batch, 9, 12, dtype="float32")


@pytest.mark.parametrize("as_parameter", [False, True])
def test_a_trained_decay_is_a_parameter_that_is_saved_and_trained(as_parameter):
    decay = paddle.to_tensor([0.9, 0.5], stop_gradient=False)
    if as_parameter:
        decay = paddle.create_parameter([2], "float32", default_initializer=nn.initializer.Assign(decay))
    layer, hidden = MultiHeadAttention(12, 2, "linear", decay=decay), random_hidden()
    assert "decay" in dict(layer.named_parameters()) and (layer.decay is decay) == as_parameter
    assert_close(layer.decay, [0.9, 0.5], 1e-7)
    layer(hidden).sum().backward()
    paddle.optimizer.SGD(0.01, parameters=layer.parameters()).step()
    other = MultiHeadAttention(12, 2, "linear", decay=paddle.to_tensor([1.0, 1.0], stop_gradient=False))
    other.set_state_dict(layer.state_dict())
    assert (layer.decay.numpy() != [0.9, 0.5]).all()
    assert_close(other(hidden), layer(hidden), 1e-6)


# from a cache
@pytest.mark.equation("4.6")
@pytest.mark.parametrize("options, one_tensor", [
    ({"placement": "qkvo"}, True),
    ({"placement": "qo"}, True),
    ({"placement": "qk"}, False),
    ({"placement": "vo"}, False),
    ({"placement": "qkv"}, True),
    ({"placement": "qkvo", "convolutions": True}, False),
], ids=str)  # fmt: skip
def test_shared_keys_and_values_are_one_tensor_in_the_cache_where_both_turn_or_none(options, one_tensor):
    layer, hidden = random_layer("softmax", causal=True, share_kv=True, **options), random_hidden()
    cache: dict = {}
    layer(hidden[:, :4], ROTARY.cos_sin(4), cache=cache)
    last = layer(hidden[:, 4:], ROTARY.cos_sin(5, 4), cache=cache)
    assert_close(last, layer(hidden, ROTARY.cos_sin(9))[:, 4:], 1e-4)
    assert cache["state"].keys.shape == [2, 2, 256, 6] and cache["state"].length == 9
    assert (cache["state"].values is None) == one_tensor


@pytest.mark.equation("4.7")
@pytest.mark.parametrize("kind", ["softmax", "window", "linear"])
def test_copies_of_a_cache_go_on_apart_and_a_cache_is_written_in_place(kind):
    layer, hidden = random_layer(kind, causal=True, convolutions=True), random_hidden(batch=1)

    def continued(cache, length, *places):
        for at, place in enumerate(places, length):
            y = layer(hidden[:, place : place + 1], ROTARY.cos_sin(1, at), cache=cache)
        return y.numpy()

    cache: dict = {}
    layer(hidden[:, :3], ROTARY.cos_sin(3), cache=cache)
    continued(cache, 3, 3)  # which has capacity now
    first, other, again = (copy.deepcopy(cache) for _ in range(3))
    expected = continued(first, 4, 4, 6)
    assert np.abs(continued(other, 4, 5, 6) - expected).max() > 1e-3
    np.testing.assert_array_equal(continued(again, 4, 4, 6), expected)
    if kind == "softmax":
        keys = cache["state"].keys
        continued(cache, 4, 4)
        assert cache["state"].keys is keys


@pytest.mark.equation("4.7")
@pytest.mark.parametrize("shape", [(2, 2, 9, 9), (2, 1, 1, 9), (1, 2, 9, 9)], ids=str)
def test_a_bias_of_any_shape_that_broadcasts_goes_on_from_a_cache(shape):
    layer, hidden, bias = random_layer("softmax", causal=True), random_hidden(), random_tensor(*shape, dtype="float32")
    cache: dict = {}
    layer(hidden[:, :5], score_bias=bias[:, :, :5, :5], cache=cache)
    last = layer(hidden[:, 5:], score_bias=bias[:, :, -4:], cache=cache)
    assert_close(last, layer(hidden, score_bias=bias)[:, 5:], 1e-5)


@pytest.mark.equation("2.10")
@pytest.mark.parametrize("kind", ["softmax", "window", "linear"])
def test_padding_that_goes_on_from_a_cache_of_padding_is_zero_as_in_the_whole(kind):
    layer, hidden, mask = random_layer(kind, causal=True), random_hidden(), paddle.to_tensor(np.arange(9) >= [[5], [2]])
    cache, outputs = {}, []
    for start, end in ((0, 3), (3, 4), (4, 9)):
        rope = ROTARY.cos_sin(end - start, start)
        outputs.append(layer(hidden[:, start:end], rope, mask[:, :end], cache=cache))
    assert_close(paddle.concat(outputs, axis=1), layer(hidden, ROTARY.cos_sin(9), mask), 1e-5)
    np.testing.assert_array_equal(outputs[1][0, 0].numpy(), layer.output.bias.numpy())


# ---- short convolutions
SEGMENTS = np.array([[3, 3, 3, -1, -1, 8, 0], [5] * 7])
MASK = np.array([[1, 1, 0, 1, 1, 0, 1], [1, 1, 1, 1, 1, 0, 0]], dtype=bool)


@pytest.mark.equation("5.5")
@pairwise({"size": [1, 2, 3, 5, 15], "causal": [False, True], "masked": [False, True], "packed": [False, True]})
def test_outputs_and_gradients_equal_the_loops(size, causal, masked, packed):
    size = size + 1 if size % 2 == 0 and not causal else size
    layer, x = DepthwiseConvolution(4, causal=causal), random_tensor(2, 7, 4)
    layer.weight = layer.create_parameter([size, 4])
    randomize(layer, "float64")
    mask, segments = MASK if masked else None, SEGMENTS if packed else None
    given = [None if one is None else paddle.to_tensor(one) for one in (mask, segments)]
    expected = reference.depthwise_convolution(x, layer.weight, mask, segments, causal)
    assert_same(layer(x, *given), expected, [x, layer.weight], atol=1e-12)
    other = x.clone()
    other[0, 2] = other[0, 5] = other[1, 5:] = 1e6  # at padding
    if masked:
        np.testing.assert_array_equal(layer(other, *given).numpy()[MASK], layer(x, *given).numpy()[MASK])
    if causal and not packed:
        cache, outputs = {}, []
        for start, end in ((0, 1), (1, 2), (2, 6), (6, 7)):
            new = None if mask is None else given[0][:, start:end]
            outputs.append(layer(x[:, start:end], new, cache=cache))
        assert_close(paddle.concat(outputs, axis=1), expected, 1e-12)


@pytest.mark.equation("5.7")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("center", [0.0, 2.5])
def test_without_training_it_gives_its_center(center, causal):
    x, layer = random_tensor(2, 5, 4, dtype="float32"), DepthwiseConvolution(4, center, causal)
    np.testing.assert_array_equal(layer(x).numpy(), center * x.numpy())
    _, gradient = paddle.grad((layer(x) ** 2 + layer(x)).sum(), [x, layer.weight])
    assert (gradient.numpy() != 0).all()
