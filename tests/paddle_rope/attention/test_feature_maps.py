"""Every feature map against its formula; what each promises of its features."""

import numpy as np
import paddle
import pytest

from paddle_rope import linear_attention, softmax_attention
from paddle_rope.attention.feature_maps import (
    OnePlusCosine,
    OrthogonalRandomFeatures,
    SoftmaxExp,
    elu_plus_one,
    exp,
    relu,
)
from tests.helpers.comparison import assert_close, random_tensor

ELEMENTWISE = {  # the map, its formula and its slope
    "elu_plus_one": (elu_plus_one, lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))),
                     lambda x: np.exp(np.minimum(x, 0))),
    "relu": (relu, lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "exp": (exp, np.exp, np.exp),
}  # fmt: skip
ALL_MAPS = {
    "elu_plus_one": elu_plus_one,
    "relu": relu,
    "exp": exp,
    "softmax_exp": SoftmaxExp(),
    "one_plus_cosine": OnePlusCosine(),
    "favor": OrthogonalRandomFeatures(4, 10),
}


def products(feature_map, q, k, key_mask=None):
    """phi(q_i) . phi(k_j) with the feature that is not rotated: ``[batch, heads, queries, seq]``."""
    phi_q = feature_map.after_rotation(feature_map.query(q))
    phi_k = feature_map.after_rotation(feature_map.key(k, key_mask), key_mask)
    return paddle.matmul(phi_q.transpose([0, 2, 1, 3]), phi_k.transpose([0, 2, 3, 1]))


@pytest.mark.equation("3.15", "3.16")
@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
def test_elementwise_maps_and_their_slopes_equal_the_formula(name, dtype, tolerance):
    phi, formula, slope = ELEMENTWISE[name]
    values = np.concatenate([np.linspace(-30, 30, 600), [-80.0, -1e-6, 1e-6, 70.0], [0.0] * (name != "relu")])
    x = paddle.to_tensor(values, dtype=dtype, stop_gradient=False)
    result = phi(x)
    assert result.dtype == x.dtype
    np.testing.assert_allclose(result.numpy(), formula(values), rtol=tolerance)
    np.testing.assert_allclose(paddle.grad(result.sum(), x)[0].numpy(), slope(values), rtol=tolerance)


@pytest.mark.equation("3.3", "3.23")
@pytest.mark.parametrize("name", ALL_MAPS)
def test_without_rotation_weights_of_every_map_are_a_probability(name):
    q, k = random_tensor(2, 9, 2, 4), random_tensor(2, 9, 2, 4)
    v = paddle.eye(9, dtype="float64").unsqueeze([0, 2]).expand([2, 9, 2, 9])  # the outputs are the weights
    mask = np.array([[True] * 9, [False] + [True] * 4 + [False] * 4])
    weights = linear_attention(q, k, v, None, paddle.to_tensor(mask), ALL_MAPS[name], normalizer="rotated").numpy()
    assert (weights >= 0).all() and (weights.transpose([0, 3, 1, 2])[~mask] == 0).all()
    if name != "relu":  # where a query may have no positive feature
        assert_close(weights.sum(axis=-1), np.ones([2, 9, 2]))


@pytest.mark.equation("3.20")
def test_one_plus_cosine_lies_between_zero_and_two_and_holds_at_the_zero_vector():
    q, k = random_tensor(1, 7, 2, 6), random_tensor(1, 5, 2, 6)
    unit_q, unit_k = (x.numpy() / np.linalg.norm(x.numpy(), axis=-1, keepdims=True) for x in (q, k))
    similarity = products(OnePlusCosine(), q, k)
    assert_close(similarity, 1 + np.einsum("bihd,bjhd->bhij", unit_q, unit_k))
    assert float(similarity.min()) >= 0 and float(similarity.max()) <= 2
    zero = random_tensor(1, 1, 1, 6, scale=0)
    one = products(OnePlusCosine(), zero, k[:, :, :1])
    np.testing.assert_array_equal(one.numpy(), 1)
    assert np.isfinite(paddle.grad(one.sum(), zero)[0].numpy()).all()


@pytest.mark.equation("3.19")
def test_random_features_are_orthogonal_in_blocks_with_gaussian_lengths():
    size, blocks = 16, 200
    projection = OrthogonalRandomFeatures(size, size * blocks).projection.numpy().astype("float64")
    lengths = np.linalg.norm(projection, axis=1)
    directions = (projection / lengths[:, np.newaxis]).reshape(blocks, size, size)
    assert_close(directions @ directions.transpose([0, 2, 1]), np.tile(np.eye(size), (blocks, 1, 1)), 1e-5)
    assert abs((lengths**2).mean() - size) < 0.5  # chi square of 16 degrees: mean 16, variance 32
    assert abs((lengths**2).var() - 2 * size) < 5
    assert abs(projection.mean()) < 0.02
    assert np.abs(projection.T @ projection / len(projection) - np.eye(size)).max() < 0.1


@pytest.mark.equation("3.19")
@pytest.mark.parametrize("head_dim, num_features", [(4, 4), (4, 10), (6, 2), (5, 1), (3, None)])
def test_random_features_have_any_number_and_a_seed_and_go_into_the_checkpoint(head_dim, num_features):
    phi, same, other = (OrthogonalRandomFeatures(head_dim, num_features, seed=seed) for seed in (3, 3, 4))
    assert phi.projection.shape == [num_features or head_dim, head_dim]
    assert phi.query(random_tensor(2, 1, 3, head_dim)).shape == [2, 1, 3, num_features or head_dim]
    np.testing.assert_array_equal(phi.projection.numpy(), same.projection.numpy())
    assert (phi.projection.numpy() != other.projection.numpy()).all()
    assert list(phi.state_dict()) == ["projection"]
    other.set_state_dict(phi.state_dict())
    np.testing.assert_array_equal(other.projection.numpy(), same.projection.numpy())
    for sizes in ((0,), (head_dim, 0), (head_dim, -2)):
        with pytest.raises(ValueError, match="positive"):
            OrthogonalRandomFeatures(*sizes)


@pytest.mark.equation("3.18")
def test_random_features_estimate_the_softmax_kernel_and_more_of_them_come_closer():
    q, k, v = (random_tensor(1, 6, 1, 4, scale=0.5) for _ in range(3))
    phi = OrthogonalRandomFeatures(4, 40_000)
    ratio = products(phi, q, k).numpy()[0, 0] / np.exp(q.numpy()[0, :, 0] @ k.numpy()[0, :, 0].T / 2)
    np.testing.assert_allclose(ratio / ratio.mean(axis=1, keepdims=True), 1, rtol=0, atol=0.08)  # a factor per query
    np.testing.assert_allclose(phi.query(q).max(axis=-1).numpy(), 1, rtol=1e-12)
    exact, errors = softmax_attention(q, k, v), []
    for count in (8, 200, 20_000):
        maps = [OrthogonalRandomFeatures(4, count, seed) for seed in range(3)]
        found = [linear_attention(q, k, v, feature_map=phi) for phi in maps]
        errors.append(np.mean([float((one - exact).square().mean()) for one in found]))
    assert errors[0] > 4 * errors[1] > 16 * errors[2] and errors[2] < 1e-3
