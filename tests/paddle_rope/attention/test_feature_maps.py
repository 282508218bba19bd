"""Every feature map against its formula; what each promises of its features."""

import numpy as np
import paddle
import pytest

from paddle_rope import linear_attention, softmax_attention
from paddle_rope.attention import (
    OnePlusCosine,
    OrthogonalRandomFeatures,
    SoftmaxExp,
    elu_plus_one,
    exp,
    feature_maps,
    relu,
)


class RoundedTo:
    """A module whose functions round their results to ``dtype``: what kernels of that dtype do, which CPU lacks."""

    def __init__(self, module, dtype):
        self.module = module
        self.dtype = dtype

    def __getattr__(self, name):
        function = getattr(self.module, name)

        def rounded(*args, **kwargs):
            return function(*args, **kwargs).astype(self.dtype).astype("float32")

        return rounded


@pytest.mark.equation("3.15")
def test_equals_elu_plus_one_in_float64():
    x = np.concatenate([np.linspace(-30, 30, 601), [-1e-9, 0.0, 1e-9, 1e4]]).reshape(5, 11, 11)
    expected = np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    np.testing.assert_allclose(elu_plus_one(paddle.to_tensor(x)).numpy(), expected, rtol=1e-14, atol=0)
    naive = paddle.nn.functional.elu(paddle.to_tensor(x)) + 1
    np.testing.assert_allclose(naive.numpy(), expected, rtol=0, atol=1e-15 * 1e4)


@pytest.mark.equation("3.15")
def test_the_slope_is_one_from_zero_on_and_the_value_below():
    x = paddle.to_tensor([-20.0, -8.0, -0.5, -1e-6, -0.0, 0.0, 1e-6, 0.5, 8.0, 1e4], dtype="float64")
    x.stop_gradient = False
    (slope,) = paddle.grad(elu_plus_one(x).sum(), x)
    np.testing.assert_allclose(slope.numpy(), np.exp(np.minimum(x.numpy(), 0)), rtol=1e-12)


@pytest.mark.equation("3.15")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_at_zero_is_exactly_one(dtype):
    x = paddle.zeros([3], dtype=dtype)
    x.stop_gradient = False
    (slope,) = paddle.grad(elu_plus_one(x).sum(), x)
    assert (slope.numpy() == 1).all()


def test_the_slope_at_zero_is_one_whatever_that_of_clip_at_its_bound(monkeypatch):
    # it is 1 in paddle 3.x and 0 in 2.6.2
    monkeypatch.setattr(paddle, "clip", lambda x, max: paddle.where(x < max, x, paddle.full_like(x, max)))
    x = paddle.zeros([3])
    x.stop_gradient = False
    assert paddle.grad(elu_plus_one(x).sum(), x)[0].tolist() == [1, 1, 1]


@pytest.mark.equation("3.15")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [-80.0, -20.0, -8.0])
def test_positive_far_below_zero(value, dtype):
    result = elu_plus_one(paddle.to_tensor([value], dtype=dtype))
    assert str(result.dtype).endswith(dtype)
    np.testing.assert_allclose(result.numpy(), np.exp(value), rtol=1e-5)


@pytest.mark.equation("3.15")
@pytest.mark.parametrize("value", [-20.0, -8.0, -3.0, 0.0, 2.0])
def test_positive_and_right_when_every_step_rounds_to_bfloat16(value, monkeypatch):
    rounded_paddle, rounded_functional = (RoundedTo(module, "bfloat16") for module in (paddle, paddle.nn.functional))
    naive = rounded_functional.elu(paddle.to_tensor([-20.0])) + 1
    assert naive.item() == 0, "elu(x) + 1 loses everything in bfloat16, or else this test shows nothing"
    monkeypatch.setattr(feature_maps, "paddle", rounded_paddle)
    monkeypatch.setattr(feature_maps, "F", rounded_functional)
    result = elu_plus_one(paddle.to_tensor([value])).item()
    assert result > 0
    assert abs(result - (value + 1 if value > 0 else np.exp(value))) <= 0.02 * result


ELEMENTWISE = {
    "relu": (relu, lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "exp": (exp, np.exp, np.exp),
}
ALL_MAPS = {
    "elu_plus_one": lambda head_dim: elu_plus_one,
    "relu": lambda head_dim: relu,
    "exp": lambda head_dim: exp,
    "softmax_exp": lambda head_dim: SoftmaxExp(),
    "one_plus_cosine": lambda head_dim: OnePlusCosine(),
    "favor": lambda head_dim: OrthogonalRandomFeatures(head_dim, 10),
}


def random(*shape, dtype="float64"):
    x = paddle.to_tensor(np.random.standard_normal(shape), dtype=dtype)
    x.stop_gradient = False
    return x


def products(feature_map, q, k, key_mask=None):
    """phi(q_i) . phi(k_j) with the feature that is not rotated: ``[batch, heads, queries, seq]``."""
    phi_q = feature_map.after_rotation(feature_map.query(q))
    phi_k = feature_map.after_rotation(feature_map.key(k, key_mask), key_mask)
    return paddle.matmul(phi_q.transpose([0, 2, 1, 3]), phi_k.transpose([0, 2, 3, 1]))


@pytest.mark.equation("3.16")
@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_elementwise_maps_and_their_slopes_equal_the_formula(name):
    phi, formula, slope = ELEMENTWISE[name]
    values = np.array([-30.0, -8.0, -0.5, -1e-6, 1e-6, 0.5, 8.0, 30.0])
    x = paddle.to_tensor(values)
    x.stop_gradient = False
    result = phi(x)
    np.testing.assert_allclose(result.numpy(), formula(values), rtol=1e-12)
    np.testing.assert_allclose(paddle.grad(result.sum(), x)[0].numpy(), slope(values), rtol=1e-12)


@pytest.mark.equation("3.36")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", sorted(ALL_MAPS))
def test_every_map_gives_finite_outputs_and_gradients_in_half_precision(name, dtype):
    q, k, v = (random(2, 9, 2, 4, dtype=dtype) for _ in range(3))
    mask = paddle.to_tensor([[True] * 9, [True] * 4 + [False] * 5])
    attended = linear_attention(4 * q, 4 * k, v, None, mask, ALL_MAPS[name](4), normalizer="rotated")
    assert attended.dtype == q.dtype
    gradients = paddle.grad(attended.astype("float32").sum(), [q, k, v])
    for x in (attended, *gradients):
        assert np.isfinite(x.astype("float32").numpy()).all()


@pytest.mark.equation("3.23")
@pytest.mark.parametrize("name", sorted(ALL_MAPS))
def test_without_rotation_weights_of_every_map_are_a_probability(name):
    q, k = random(2, 9, 2, 4), random(2, 9, 2, 4)
    v = paddle.eye(9, dtype="float64").unsqueeze([0, 2]).expand([2, 9, 2, 9])  # the outputs are the weights
    mask = np.array([[True] * 9, [False] + [True] * 4 + [False] * 4])
    weights = linear_attention(q, k, v, None, paddle.to_tensor(mask), ALL_MAPS[name](4), normalizer="rotated").numpy()
    assert (weights >= 0).all()
    assert (weights.transpose([0, 3, 1, 2])[~mask] == 0).all()
    if "relu" not in name:  # where a query may have no positive feature
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-10)


@pytest.mark.equation("3.17")
def test_softmax_exp_is_a_softmax_over_features_and_one_over_the_keys_of_the_sequence():
    q, k = random(2, 5, 2, 3), random(2, 5, 2, 3)
    mask = np.array([[True, True, False, True, False], [True] * 5])
    phi = SoftmaxExp()
    e_q, e_k = np.exp(q.numpy()), np.exp(k.numpy()) * mask[:, :, np.newaxis, np.newaxis]
    expected_q = e_q / e_q.sum(axis=-1, keepdims=True)
    expected_k = e_k / e_k.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(phi.query(q).numpy(), expected_q, rtol=1e-12)
    np.testing.assert_allclose(phi.key(k, paddle.to_tensor(mask)).numpy(), expected_k, rtol=1e-12, atol=1e-25)
    weights = products(phi, q, k)
    np.testing.assert_allclose(weights.sum(axis=-1).numpy(), 1, rtol=1e-12)


@pytest.mark.equation("3.20")
def test_one_plus_cosine_lies_between_zero_and_two_and_holds_at_the_zero_vector():
    q, k = random(1, 7, 2, 6), random(1, 5, 2, 6)
    expected = 1 + np.einsum(
        "bihd,bjhd->bhij", *(x.numpy() / np.linalg.norm(x.numpy(), axis=-1, keepdims=True) for x in (q, k))
    )
    similarity = products(OnePlusCosine(), q, k)
    np.testing.assert_allclose(similarity.numpy(), expected, rtol=0, atol=1e-10)
    assert float(similarity.min()) >= 0
    assert float(similarity.max()) <= 2
    zero = paddle.zeros([1, 1, 1, 6], dtype="float64")
    zero.stop_gradient = False
    one = products(OnePlusCosine(), zero, k[:, :, :1])
    np.testing.assert_array_equal(one.numpy(), 1)
    assert np.isfinite(paddle.grad(one.sum(), zero)[0].numpy()).all()


@pytest.mark.equation("3.19")
def test_random_features_are_orthogonal_in_blocks_with_gaussian_lengths():
    size, blocks = 16, 200
    projection = OrthogonalRandomFeatures(size, size * blocks).projection.numpy().astype("float64")
    lengths = np.linalg.norm(projection, axis=1)
    directions = (projection / lengths[:, np.newaxis]).reshape(blocks, size, size)
    gram = directions @ directions.transpose([0, 2, 1])
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(size), gram.shape), rtol=0, atol=1e-5)
    assert abs((lengths**2).mean() - size) < 0.5  # chi square of 16 degrees: mean 16, variance 32
    assert abs((lengths**2).var() - 2 * size) < 5
    assert abs(projection.mean()) < 0.02
    assert np.abs(projection.T @ projection / len(projection) - np.eye(size)).max() < 0.1


@pytest.mark.equation("3.19")
@pytest.mark.parametrize("head_dim, num_features", [(4, 4), (4, 10), (6, 2), (5, 1)])
def test_random_features_have_any_number(head_dim, num_features):
    phi = OrthogonalRandomFeatures(head_dim, num_features)
    assert phi.projection.shape == [num_features, head_dim]
    assert phi.query(random(2, 1, 3, head_dim)).shape == [2, 1, 3, num_features]
    assert OrthogonalRandomFeatures(head_dim).projection.shape == [head_dim, head_dim]


def test_random_features_are_seeded_and_go_into_the_checkpoint():
    phi = OrthogonalRandomFeatures(4, 10, seed=3)
    same, other = OrthogonalRandomFeatures(4, 10, seed=3), OrthogonalRandomFeatures(4, 10, seed=4)
    np.testing.assert_array_equal(phi.projection.numpy(), same.projection.numpy())
    assert (phi.projection.numpy() != other.projection.numpy()).all()
    assert list(phi.state_dict()) == ["projection"]
    other.set_state_dict(phi.state_dict())
    np.testing.assert_array_equal(other.projection.numpy(), same.projection.numpy())


@pytest.mark.equation("3.18")
def test_random_features_estimate_the_softmax_kernel():
    q, k = random(1, 6, 1, 4) / 2, random(1, 5, 1, 4) / 2
    phi = OrthogonalRandomFeatures(4, 40_000)
    estimate = products(phi, q, k).numpy()[0, 0]
    kernel = np.exp(q.numpy()[0, :, 0] @ k.numpy()[0, :, 0].T / 2)
    ratio = estimate / kernel  # one factor for each query
    np.testing.assert_allclose(ratio / ratio.mean(axis=1, keepdims=True), 1, rtol=0, atol=0.08)
    np.testing.assert_allclose(phi.query(q).max(axis=-1).numpy(), 1, rtol=1e-12)


@pytest.mark.equation("3.18")
def test_more_random_features_come_closer_to_softmax_attention():
    q, k, v = (random(1, 12, 2, 4) / 2 for _ in range(3))
    exact = softmax_attention(q, k, v)
    errors = []
    for num_features in (8, 200, 20_000):
        attended = [
            linear_attention(q, k, v, feature_map=OrthogonalRandomFeatures(4, num_features, seed)) for seed in range(3)
        ]
        errors.append(np.mean([float((x - exact).square().mean()) for x in attended]))
    assert errors[0] > 4 * errors[1] > 16 * errors[2]
    assert errors[2] < 1e-3


@pytest.mark.parametrize("arguments", [(0,), (4, 0), (4, -2)], ids=str)
def test_sizes_of_random_features_must_be_positive(arguments):
    with pytest.raises(ValueError, match="positive"):
        OrthogonalRandomFeatures(*arguments)
