"""Short depthwise convolutions: against the loops, with padding, packing and in static graphs."""

import numpy as np
import paddle
import pytest
from paddle.static import InputSpec

from paddle_rope import RoFormerConfig, reference
from paddle_rope.convolution import DepthwiseConvolution

SEGMENTS = [[3, 3, 3, -1, -1, 8, 0], [5] * 7]
MASK = np.array([[1, 1, 0, 1, 1, 0, 1], [1, 1, 1, 1, 1, 0, 0]], dtype=bool)


def random(*shape, dtype="float64"):
    x = paddle.to_tensor(np.random.standard_normal(shape), dtype=dtype)
    x.stop_gradient = False
    return x


def convolution(hidden_size, size, dtype="float64"):
    layer = DepthwiseConvolution(hidden_size, size)
    layer.to(dtype=dtype)
    layer.weight.set_value(random(size, hidden_size, dtype=dtype))
    return layer


@pytest.mark.equation("5.5")
@pytest.mark.parametrize("segments", [None, SEGMENTS], ids=["", "packed"])
@pytest.mark.parametrize("mask", [None, MASK], ids=["", "padded"])
@pytest.mark.parametrize("size", [1, 3, 5, 15])
def test_outputs_and_gradients_equal_the_loops(size, mask, segments):
    layer, x = convolution(4, size), random(2, 7, 4)
    tensors = [None if given is None else paddle.to_tensor(given) for given in (mask, segments)]
    y = layer(x, *tensors)
    expected = reference.depthwise_convolution(x, layer.weight, mask, segments)
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=0, atol=1e-12)
    towards = random(2, 7, 4)
    variables = [x, layer.weight]
    found, exact = (paddle.grad((result * towards).sum(), variables) for result in (y, expected))
    for name, one, other in zip(("x", "weight"), found, exact):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.equation("5.7")
def test_without_training_it_gives_its_center():
    x = random(2, 5, 4, dtype="float32")
    for center in (0.0, 1.0, 2.5):
        layer = DepthwiseConvolution(4, 5, center)
        np.testing.assert_array_equal(layer(x).numpy(), center * x.numpy())
        assert (paddle.grad((layer(x) ** 2 + layer(x)).sum(), layer.weight)[0].numpy() != 0).all()


@pytest.mark.equation("5.5")
def test_texts_equal_those_alone_whatever_stands_at_padding_and_in_other_segments():
    layer = convolution(3, 5)
    x = random(1, 9, 3)
    segments = paddle.to_tensor([[0, 0, 0, 0, 1, 2, 2, 2, 2]])
    mask = paddle.to_tensor([[True] * 7 + [False] * 2])
    packed = layer(x, mask, segments).numpy()
    for start, end in ((0, 4), (4, 5), (5, 7)):
        np.testing.assert_allclose(packed[:, start:end], layer(x[:, start:end]).numpy(), rtol=0, atol=1e-12)
    other = x.clone()
    other[:, 7:] = 1e6
    np.testing.assert_array_equal(layer(other, mask, segments)[:, :7].numpy(), packed[:, :7])


@pytest.mark.equation("5.5")
def test_saved_graphs_take_any_batch_and_length(tmp_path):
    layer = convolution(4, 5, "float32")
    specs = [InputSpec([None, None, 4], "float32"), InputSpec([None, None], "bool"), InputSpec([None, None], "int64")]
    paddle.jit.save(paddle.jit.to_static(layer, input_spec=specs, full_graph=True), str(tmp_path / "layer"))
    loaded = paddle.jit.load(str(tmp_path / "layer"))
    for batch, seq in ((1, 1), (3, 2), (2, 9)):
        inputs = (
            random(batch, seq, 4, dtype="float32"),
            paddle.rand([batch, seq]) > 0.3,
            paddle.sort(paddle.randint(0, 3, [batch, seq]), axis=1),
        )
        np.testing.assert_allclose(loaded(*inputs).numpy(), layer(*inputs).numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_causal_convolutions_equal_the_reference_and_step_by_step(size, packed):
    layer, x = DepthwiseConvolution(4, size, causal=True).to(dtype="float64"), random(2, 9, 4)
    layer.weight.set_value(random(size, 4))
    mask = paddle.to_tensor(np.arange(9) >= np.array([[3], [0]]))
    segments = paddle.to_tensor([[0] * 4 + [1] * 5, [2] * 7 + [3] * 2]) if packed else None
    whole = layer(x, mask, segments)
    expected = reference.depthwise_convolution(x, layer.weight, mask.numpy(), segments, causal=True)
    np.testing.assert_allclose(whole.numpy(), expected.numpy(), rtol=0, atol=1e-12)
    cache, outputs, start = None, [], 0
    for new in () if packed else (1, 1, 4, 3):
        end = start + new
        y, cache = layer.forward_with_cache(x[:, start:end], cache, mask[:, start:end])
        outputs.append(y)
        start = end
    if outputs:
        np.testing.assert_allclose(paddle.concat(outputs, axis=1).numpy(), whole.numpy(), rtol=0, atol=1e-12)


def test_what_is_no_truth_value_is_an_error():
    with pytest.raises(ValueError, match="convolutions must be true or false"):
        RoFormerConfig(convolutions=["value"])


@pytest.mark.parametrize("size", [4, 0, -1])
def test_a_convolution_without_a_middle_is_an_error(size):
    with pytest.raises(ValueError, match=f"size must be odd and positive, got {size}"):
        DepthwiseConvolution(8, size)
