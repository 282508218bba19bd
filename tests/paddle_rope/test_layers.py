"""The plain forms of layers do what Paddle's layers and the equations do; the native ones are compared with them."""

import numpy as np
import paddle
import pytest

from paddle_rope.layers import Dropout, LayerNorm, Linear, RMSNorm, scaled
from tests.helpers.comparison import assert_close, assert_same, cast, random_tensor, randomize


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("leading", [(), (1,), (5,), (2, 1, 4, 3)], ids=str)
def test_linear_equals_paddles_under_the_same_names(leading, bias):
    bias_attr = None if bias else False
    ours, theirs = randomize(Linear(7, 3, bias_attr)), paddle.nn.Linear(7, 3, bias_attr=bias_attr)
    assert theirs.set_state_dict(ours.state_dict()) == ([], [])
    x = random_tensor(*leading, 7, dtype="float32")
    assert_same(ours(x), theirs(x), [x, *ours.parameters()], [x, *theirs.parameters()], 1e-5)


# dropout


def test_dropout_drops_as_many_of_the_random_numbers_as_its_probability_says(monkeypatch):
    each_number = np.arange(65536, dtype=np.uint16)
    monkeypatch.setattr(np.random, "bytes", lambda count: each_number.tobytes())
    np.testing.assert_array_equal(Dropout(0.25)(paddle.ones([65536])).numpy() != 0, each_number >= 16384)
    # p = 0.3 is rounded to 19661 / 65536, and the kept values are scaled for that
    np.testing.assert_allclose(Dropout(0.3)(paddle.ones([65536])).max().item(), 65536 / (65536 - 19661), rtol=1e-7)


def test_dropout_is_independent_of_place_follows_numpys_seed_and_has_its_mask_as_gradient():
    kept = Dropout(0.5)(paddle.ones([64, 64])).numpy() != 0
    assert all(abs(kept.mean(axis=axis) - 0.5).max() < 0.5 * 5 / 8 for axis in (0, 1))
    assert np.unique(kept, axis=0).shape[0] == 64
    x = random_tensor(41, 5, dtype="float32")
    np.random.seed(5)
    first, second = Dropout(0.5)(x), Dropout(0.5)(x)
    np.random.seed(5)
    np.testing.assert_array_equal(Dropout(0.5)(x).numpy(), first.numpy())
    assert (first != second).any()
    (gradient,) = paddle.grad(first.sum(), x)
    assert set(np.unique(gradient.numpy())) == {0.0, 2.0}
    np.testing.assert_array_equal((x * gradient).numpy(), first.numpy())
    evaluated = Dropout(0.7)
    evaluated.eval()
    np.testing.assert_array_equal(evaluated(x).numpy(), x.numpy())
    np.testing.assert_array_equal(Dropout(0.0)(x).numpy(), x.numpy())
    assert not Dropout(1.0)(x).numpy().any()


# norms


@pytest.mark.parametrize("frozen", [(), ("weight",), ("bias",), ("weight", "bias")], ids="+".join)
def test_layer_norm_with_frozen_parameters_has_the_gradient_of_its_equation(frozen):
    norm, x = randomize(LayerNorm(7)), random_tensor(2, 3, 7, dtype="float32")
    exact = cast([x, norm.weight, norm.bias], "float64")
    centered = exact[0] - exact[0].mean(axis=-1, keepdim=True)
    normal = centered / paddle.sqrt(centered.square().mean(axis=-1, keepdim=True))
    expected = normal * exact[1] + exact[2]
    for name in frozen:
        getattr(norm, name).stop_gradient = True
    output, towards = norm(x), random_tensor(2, 3, 7)
    assert_close(output, expected, 1e-5)
    paddle.autograd.backward([output], [towards.astype("float32")])
    gradients = paddle.grad((expected * towards).sum(), exact)
    for name, one, other in zip(("x", "weight", "bias"), (x, norm.weight, norm.bias), gradients):
        assert (one.grad is None) == (name in frozen)
        assert name in frozen or np.abs(one.grad.numpy() - other.numpy()).max() < 1e-4


@pytest.mark.equation("5.2")
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
def test_rms_norm_is_the_quotient_by_the_root_mean_square(dtype, tolerance):
    x = random_tensor(3, 1, 7, dtype=dtype, scale=5)
    exact = cast([x], "float64")
    expected = exact[0] / paddle.sqrt(exact[0].square().mean(axis=-1, keepdim=True))
    assert_same(RMSNorm()(x), expected, [x], exact, tolerance)
    half = RMSNorm()(paddle.to_tensor([[300.0, -400.0], [0.0, 0.0]]).astype("float16"))  # squares beyond float16
    assert half.dtype == paddle.float16
    assert_close(half, [[0.8485, -1.1314], [0, 0]], 1e-3)


@pytest.mark.parametrize("shape", [[3, 4], [1, 4], [4], [2, 1, 1], [1]])
def test_scaled_is_the_product_that_broadcasts_and_keeps_the_dtype(shape):
    inputs = x, factor = random_tensor(2, 3, 4), random_tensor(*shape)
    assert_same(scaled(x, factor), x * factor, inputs, atol=1e-12)
    masked = scaled(paddle.ones([2, 3, 4], "bfloat16"), factor > 0)
    assert masked.dtype == paddle.bfloat16
    assert_close(masked, np.broadcast_to(factor.numpy() > 0, [2, 3, 4]))
