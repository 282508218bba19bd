"""The plain forms of Linear and Dropout do what Paddle's layers do; the tests of native operators compare with them."""

import numpy as np
import paddle
import pytest

from paddle_rope.layers import Dropout, LayerNorm, Linear, RMSNorm, scaled
from paddle_rope.native.dispatch import plain_forms


@pytest.fixture(autouse=True)
def plain():
    with plain_forms():
        yield


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("leading", [(), (1,), (5,), (2, 3), (2, 1, 4, 3)], ids=str)
def test_linear_equals_paddles_in_outputs_and_gradients(leading, bias):
    ours = Linear(7, 3, bias_attr=None if bias else False)
    theirs = paddle.nn.Linear(7, 3, bias_attr=None if bias else False)
    for parameter in ours.parameters():
        parameter.set_value(paddle.to_tensor(np.random.standard_normal(parameter.shape), dtype="float32"))
    theirs.set_state_dict(ours.state_dict())
    x = paddle.to_tensor(np.random.standard_normal((*leading, 7)), dtype="float32")
    x.stop_gradient = False
    towards = paddle.to_tensor(np.random.standard_normal((*leading, 3)), dtype="float32")
    outputs, gradients = [], []
    for layer in (ours, theirs):
        outputs.append(layer(x))
        gradients.append(paddle.grad((outputs[-1] * towards).sum(), [x, *layer.parameters()]))
    assert outputs[0].shape == outputs[1].shape == [*leading, 3]
    np.testing.assert_allclose(outputs[0].numpy(), outputs[1].numpy(), rtol=0, atol=1e-5)
    assert len(gradients[0]) == (3 if bias else 2)
    for gradient, expected in zip(*gradients):
        assert gradient.shape == expected.shape
        np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=0, atol=1e-5)


def test_linear_saves_under_paddles_names():
    state = Linear(4, 2).state_dict()
    assert sorted(state) == ["bias", "weight"]
    assert state["weight"].shape == [4, 2]


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dropout_keeps_one_minus_p_and_the_mean(p, dtype):
    shape = [3, 101, 97]
    dropped = Dropout(p)(paddle.ones(shape, dtype=dtype))
    assert str(dropped.dtype).endswith(dtype)
    assert dropped.shape == shape
    values = dropped.numpy()
    deviation = np.sqrt(p * (1 - p) / values.size)
    assert abs((values != 0).mean() - (1 - p)) < 5 * deviation
    np.testing.assert_allclose(values[values != 0], 1 / (1 - p), rtol=1e-3)
    assert abs(values.mean() - 1) < 5 * deviation / (1 - p)


def test_dropout_drops_as_many_of_the_random_numbers_as_its_probability_says(monkeypatch):
    each_number = np.arange(65536, dtype=np.uint16)
    monkeypatch.setattr(np.random, "bytes", lambda count: each_number.tobytes())
    kept = Dropout(0.25)(paddle.ones([65536])).numpy() != 0
    np.testing.assert_array_equal(kept, each_number >= 16384)


def test_dropout_drops_independently_of_place():
    kept = Dropout(0.5)(paddle.ones([64, 64])).numpy() != 0
    for axis in (0, 1):
        assert abs(kept.mean(axis=axis) - 0.5).max() < 0.5 * 5 / 8
    assert np.unique(kept, axis=0).shape[0] == 64


def test_dropout_scales_by_exactly_what_keeps_the_mean():
    # p = 0.3 is rounded to 19661 / 65536, and the kept values are scaled for that
    values = Dropout(0.3)(paddle.ones([1000], dtype="float32")).numpy()
    np.testing.assert_allclose(values.max(), 65536 / (65536 - 19661), rtol=1e-7)


def test_dropout_is_the_identity_in_eval_and_without_probability():
    x = paddle.to_tensor(np.random.standard_normal((5, 3)), dtype="float32")
    dropout = Dropout(0.7)
    dropout.eval()
    np.testing.assert_array_equal(dropout(x).numpy(), x.numpy())
    np.testing.assert_array_equal(Dropout(0.0)(x).numpy(), x.numpy())


def test_dropout_of_everything_gives_zeros():
    assert not Dropout(1.0)(paddle.ones([300, 1000])).numpy().any()


def test_dropout_is_reproducible_under_numpys_seed():
    x = paddle.ones([50, 7])
    dropout = Dropout(0.4)
    np.random.seed(5)
    first, second = dropout(x).numpy(), dropout(x).numpy()
    np.random.seed(5)
    np.testing.assert_array_equal(dropout(x).numpy(), first)
    assert (first != second).any()


def test_the_gradient_of_dropout_is_its_mask():
    x = paddle.to_tensor(np.random.standard_normal((41, 5)), dtype="float32")
    x.stop_gradient = False
    dropped = Dropout(0.5)(x)
    (gradient,) = paddle.grad(dropped.sum(), x)
    assert set(np.unique(gradient.numpy())) == {0.0, 2.0}
    np.testing.assert_array_equal((x * gradient).numpy(), dropped.numpy())


@pytest.mark.parametrize("frozen", [(), ("weight",), ("bias",), ("weight", "bias")], ids="+".join)
def test_layer_norm_with_frozen_parameters_has_the_gradient_of_its_equation(frozen):
    x, towards = (np.random.standard_normal((2, 3, 7)) for _ in range(2))
    norm = LayerNorm(7)
    for parameter in norm.parameters():
        parameter.set_value(paddle.to_tensor(np.random.standard_normal(7), dtype="float32"))
    for name in frozen:
        getattr(norm, name).stop_gradient = True
    given = paddle.to_tensor(x, dtype="float32", stop_gradient=False)
    output = norm(given)
    paddle.autograd.backward([output], [paddle.to_tensor(towards, dtype="float32")])
    deviation = x.std(axis=-1, keepdims=True)
    normal, part = (x - x.mean(axis=-1, keepdims=True)) / deviation, towards * norm.weight.numpy()
    exact = part - part.mean(axis=-1, keepdims=True) - normal * (part * normal).mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(output.numpy(), normal * norm.weight.numpy() + norm.bias.numpy(), rtol=0, atol=1e-5)
    np.testing.assert_allclose(given.grad.numpy(), exact / deviation, rtol=0, atol=1e-5)
    of_parameters = {"weight": (towards * normal).sum(axis=(0, 1)), "bias": towards.sum(axis=(0, 1))}
    for name, expected in of_parameters.items():
        found = getattr(norm, name).grad
        assert (found is None) == (name in frozen)
        assert found is None or np.abs(found.numpy() - expected).max() < 1e-4


@pytest.mark.equation("5.2")
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
def test_rms_norm_has_mean_square_one_and_the_gradient_of_its_equation(dtype, tolerance):
    x = paddle.to_tensor(np.random.standard_normal((3, 1, 7)) * 5, dtype=dtype, stop_gradient=False)
    output = RMSNorm()(x)
    assert output.dtype == x.dtype
    np.testing.assert_allclose((output.numpy() ** 2).mean(axis=-1), 1, rtol=tolerance * 10)
    towards = np.random.standard_normal(x.shape)
    gradient = paddle.grad((output * paddle.to_tensor(towards, dtype=dtype)).sum(), [x])[0].numpy()
    value = x.numpy().astype("float64")
    scale = np.sqrt((value**2).mean(axis=-1, keepdims=True))
    exact = towards / scale - value * (towards * value).mean(axis=-1, keepdims=True) / scale**3
    np.testing.assert_allclose(gradient, exact, rtol=0, atol=tolerance)


def test_rms_norm_of_half_precision_does_not_overflow_and_zero_stays_zero():
    x = paddle.to_tensor([[300.0, -400.0], [0.0, 0.0]]).astype("float16")
    output = RMSNorm()(x)
    assert output.dtype == paddle.float16
    np.testing.assert_allclose(output.astype("float32").numpy(), [[0.8485, -1.1314], [0, 0]], atol=1e-3)


# ---- scaled


@pytest.mark.parametrize("shape", [[3, 4], [1, 4], [4], [2, 1, 1], [1]])
def test_scaled_is_the_product_that_broadcasts_with_its_gradients(shape):
    x, factor = paddle.randn([2, 3, 4], dtype="float64"), paddle.randn(shape, dtype="float64")
    x.stop_gradient = factor.stop_gradient = False
    product, expected = scaled(x, factor), x * factor
    np.testing.assert_array_equal(product.numpy(), expected.numpy())
    towards = paddle.randn([2, 3, 4], dtype="float64")
    gradients, expected_gradients = (paddle.grad((y * towards).sum(), [x, factor]) for y in (product, expected))
    for gradient, expected_gradient in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=1e-12)


def test_scaled_by_a_mask_keeps_the_dtype_and_zeroes_what_the_mask_leaves_out():
    x = paddle.ones([2, 3], dtype="bfloat16")
    masked = scaled(x, paddle.to_tensor([True, False, True]))
    assert masked.dtype == paddle.bfloat16
    assert masked.astype("float32").tolist() == [[1, 0, 1]] * 2
