"""Linear attention: random features, bounds of the denominator, precision, decay, and what continues from a state."""

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest

from paddle_rope import RotaryPositionEmbedding, backend, linear_attention, linear_attention_step
from paddle_rope.attention import chunked
from paddle_rope.attention.feature_maps import OnePlusCosine, OrthogonalRandomFeatures, elu_plus_one
from tests.helpers.comparison import assert_close, assert_same, cast, random_tensor
from tests.helpers.pairwise import pairwise
from tests.paddle_rope import reference
from tests.paddle_rope.attention.kernels import CAUSAL, DECAY, FORMS, KERNELS, random_qkv, rope_of, turn_of

LINEAR = [name for name in KERNELS if "linear" in name and "norm" not in name]
pytestmark = pytest.mark.usefixtures("native_operators")


@pytest.mark.equation("3.4")
def test_relative_positions_alone_count_with_more_features_than_head_dim():
    qkv, phi, rotary = random_qkv(1, 6), OrthogonalRandomFeatures(4, 10), RotaryPositionEmbedding(10)
    here, there = (linear_attention(*qkv, rotary.cos_sin(6, at, "float64"), feature_map=phi) for at in (0, 100))
    assert_close(there, here)


@pytest.mark.equation("3.20")
def test_one_plus_cosine_holds_at_the_zero_vector():
    zero, k, v = random_tensor(1, 1, 1, 6, scale=0), random_tensor(1, 1, 1, 6), random_tensor(1, 1, 1, 6)
    attended = linear_attention(zero, k, v, feature_map=OnePlusCosine(), normalizer="rotated")
    assert_close(attended, v)
    assert np.isfinite(paddle.grad(attended.sum(), zero)[0].numpy()).all()


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
@pytest.mark.parametrize("head_dim, num_features", [(4, 10), (6, 2), (3, None)])
def test_random_features_have_any_number_and_a_seed_and_go_into_the_checkpoint(head_dim, num_features):
    phi, same, other = (OrthogonalRandomFeatures(head_dim, num_features, seed=seed) for seed in (3, 3, 4))
    assert phi.projection.shape == [num_features or head_dim, head_dim]
    assert phi.query(random_tensor(2, 1, 3, head_dim)).shape == [2, 1, 3, num_features or head_dim]
    np.testing.assert_array_equal(phi.projection.numpy(), same.projection.numpy())
    assert (phi.projection.numpy() != other.projection.numpy()).all()
    assert list(phi.state_dict()) == ["projection"]
    other.set_state_dict(phi.state_dict())
    np.testing.assert_array_equal(other.projection.numpy(), same.projection.numpy())


@pytest.mark.equation("3.18")
def test_random_features_estimate_the_softmax_kernel():
    q, k = (random_tensor(1, 6, 1, 4, scale=0.5) for _ in range(2))
    phi = OrthogonalRandomFeatures(4, 40_000)
    found = paddle.einsum("bihf,bjhf->ij", phi.query(q), phi.key(k)).numpy()
    ratio = found / np.exp(q.numpy()[0, :, 0] @ k.numpy()[0, :, 0].T / 2)
    np.testing.assert_allclose(ratio / ratio.mean(axis=1, keepdims=True), 1, rtol=0, atol=0.08)  # a factor per query
    np.testing.assert_allclose(phi.query(q).max(axis=-1).numpy(), 1, rtol=1e-12)


# the denominator
@pytest.mark.equation("3.7")
def test_a_denominator_under_the_bound_is_cut_at_the_bound():
    q, k, v = random_qkv(1, 3, 1, 2, 2)
    rope = rope_of(q, positions=paddle.to_tensor([0.0, np.pi, np.pi]))
    options = {"feature_map": lambda x: paddle.to_tensor([1.0, 0.0], dtype=x.dtype).expand(x.shape)}
    attended = linear_attention(q, k, v, rope, normalizer="rotated", **options).numpy()[0, :, 0]
    numerator = v.numpy()[0, 0, 0] - v.numpy()[0, 1, 0] - v.numpy()[0, 2, 0]
    np.testing.assert_allclose(attended[:2], [numerator / 1e-6, -numerator], rtol=1e-10)


@pytest.mark.equation("3.7")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("feature_map, scale, shift", [
    (elu_plus_one, 0.01, -12),  # 6e-6
    (elu_plus_one, 0, -35.5),  # 4e-16
    (OrthogonalRandomFeatures(16), 5, 0),  # of long keys: less
    (lambda x: paddle.full_like(x, 3e-16), 0, 0),
], ids=["elu", "tiny elu", "favor", "constant"])  # fmt: skip
def test_tiny_features_are_averaged_as_well_as_others(feature_map, scale, shift, dtype):
    # with values 1 an average is 1, however small the features
    q, k, v = random_qkv(1, 40, 2, 16, 16, dtype=dtype)
    q, k = (x.detach() * scale + shift for x in (q, k))
    k.stop_gradient = False
    np.testing.assert_allclose(linear_attention(q, k, paddle.ones_like(v), None, None, feature_map), 1, rtol=1e-5)
    attended = linear_attention(q, k, v, feature_map=feature_map)
    for gradient in paddle.grad(attended.sum(), [k, v], allow_unused=True):
        assert gradient is None or bool(paddle.isfinite(gradient).all())


@pytest.mark.equation("3.7")
@pairwise({"name": LINEAR, "form": list(FORMS), "placement": ["qk", "q", "k"]})
def test_features_that_hardly_overlap_are_bounded_as_in_the_double_sum(name, form, placement):
    q, k, v = random_qkv(2, 150)
    apart = paddle.to_tensor([30.0, -30.0, 30.0, -30.0], dtype="float64")  # most pairs have one small factor each
    exact = cast([20 * q + apart, 20 * k - apart, v], "float64")
    inputs = cast(exact, FORMS[form].dtype)
    with FORMS[form].context():
        attended = KERNELS[name](*inputs, rope_of(inputs[0]), placement=placement)
    expected = KERNELS[name].reference(*exact, turn_of(range(150)), placement=placement)
    assert_same(attended, expected, inputs, exact, 10 * FORMS[form].tolerance)
    assert float(attended.abs().max()) > 10  # some are bounded: otherwise they are averages


@pytest.mark.equation("3.16")
def test_a_query_or_all_keys_without_positive_feature_give_zero():
    q, k, v = random_qkv(1, 4)
    for given in ((-q.abs(), k, v), (q, -k.abs(), v)):
        attended = linear_attention(*given, feature_map=F.relu)
        assert (attended.numpy() == 0).all()
        assert all(np.isfinite(x.numpy()).all() for x in paddle.grad(attended.sum(), [q, k, v]))


# precision
@pytest.mark.equation("3.36")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("phi, normalizer", [
    (elu_plus_one, "unrotated"), (elu_plus_one, "none"), (OnePlusCosine(), "rotated"), (F.relu, "unrotated"),
])  # fmt: skip
def test_sums_beyond_half_precision_are_right(phi, normalizer, dtype):
    # the denominator is 5000 * 8 * 16 = 640,000: float16 has no such number, bfloat16 stops counting at 256
    q = paddle.full([1, 5000, 1, 8], 3.0).astype(dtype)
    v = paddle.full([1, 5000, 1, 3], 100.0).astype(dtype)
    attended = linear_attention(q, q, v, feature_map=phi, normalizer=normalizer)
    assert attended.dtype == q.dtype
    np.testing.assert_allclose(attended.astype("float32").numpy(), 1 if normalizer == "none" else 100, rtol=1.6e-2)


@pytest.mark.equation("3.37")
def test_sums_are_taken_outside_auto_cast(amp_as_on_gpu):
    levels = amp_as_on_gpu(F, "relu")
    linear_attention(*random_qkv(1, 3, dtype="float32"), feature_map=F.relu)
    assert levels == [paddle.base.core.AmpLevel.O0] * 2


# decay, and what continues from a state
@pytest.mark.equation("3.30")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("form", ["float32", "native"])
def test_a_gamma_that_vanishes_leaves_each_token_its_own_value(causal, form):
    q, k, v = qkv = random_qkv(1, 200, dtype="float32")
    with FORMS[form].context():
        attended = linear_attention(*qkv, rope_of(q), decay=[1e-30, 1e-6], causal=causal)
    assert_close(attended, v, 1e-4)
    gradients = paddle.grad(attended.sum(), qkv)
    assert_close(gradients[2], paddle.ones_like(v), 1e-4)
    assert all(bool(paddle.isfinite(x).all()) for x in gradients)


@pytest.mark.parametrize("causal", [False, True])
def test_a_trained_decay_has_the_gradient_of_the_double_sum_and_is_not_fetched(causal, monkeypatch):
    qkv = [*random_qkv(seq=131), paddle.to_tensor([0.9, 0.3], dtype="float64", stop_gradient=False)]
    options, rope = {"decay": qkv[3], "causal": causal}, rope_of(qkv[0])
    expected = reference.linear_attention(*qkv[:3], turn_of(range(131)), **options)
    assert_same(linear_attention(*qkv[:3], rope, **options), expected, qkv, atol=1e-9)
    with monkeypatch.context() as patch:
        patch.setattr(backend, "computes_on_cpu", lambda: False)
        patch.setattr(paddle.Tensor, "numpy", None)
        attended = linear_attention(*qkv[:3], rope, **options)
    assert_same(attended, expected, qkv, atol=1e-9)


@pytest.mark.parametrize("options", [{}, CAUSAL, DECAY, {**CAUSAL, **DECAY}], ids=str)
def test_packed_segments_of_many_chunks_and_groups_equal_the_double_sum(options, monkeypatch):
    for name, size in (("_ONE_CHUNK", 8), ("_CHUNK", 4), ("_GROUP", 2)):  # 130 tokens are cut four times
        monkeypatch.setattr(chunked, name, size)
    qkv, ids = random_qkv(2, 130), np.repeat([[0, 1, 2], [3, 4, 5]], [3, 90, 37], axis=1)
    packed = linear_attention(*qkv, segment_ids=paddle.to_tensor(ids), **options)
    assert_same(packed, reference.linear_attention(*qkv, segment_ids=ids, **options), qkv, atol=1e-9)


def test_states_are_float32_at_least_and_are_not_changed():
    halves = cast(random_qkv(1, 3), "float16")
    state, y = linear_attention_step(None, *halves)
    assert y.dtype == paddle.float16 and state.key_values.dtype == state.keys.dtype == paddle.float32
    assert linear_attention_step(None, *halves, normalizer="none")[0].keys is None
    before = [state.key_values.numpy().copy(), state.keys.numpy().copy()]
    branches = [linear_attention_step(state, *(x[:, i : i + 1] for x in halves))[1].numpy() for i in (1, 2, 1)]
    np.testing.assert_array_equal(branches[0], branches[2])
    np.testing.assert_array_equal(state.key_values.numpy(), before[0])
    np.testing.assert_array_equal(state.keys.numpy(), before[1])


@pytest.mark.equation("4.1")
def test_rope_on_values_and_outputs_is_a_complex_linear_recurrence():
    # kexue.fm 10862: with a_ij = gamma^(i-j), o_i = R_i^T sum_{j<=i} a_ij R_j v_j is, pair by pair as complex numbers,
    # o_i = lambda o_{i-1} + v_i with lambda = gamma exp(-i theta)
    gamma, seq, value_dim = 0.95, 150, 6
    q, k, v = random_qkv(1, seq, 1, 4, value_dim)
    options = {"feature_map": lambda x: paddle.ones_like(x[..., :1]), "decay": [gamma], "placement": "vo"}
    options |= {"rope": rope_of(v), "causal": True}
    weights = np.cumsum(gamma ** np.arange(seq))  # the denominator, sum_{j<=i} a_ij
    attended = linear_attention(q, k, v, **options).numpy()[0, :, 0] * weights[:, np.newaxis]
    normed = linear_attention(q, k, v, normalizer="none", **options).numpy()[0, :, 0]

    complex_v = v.numpy()[0, :, 0, 0::2] + 1j * v.numpy()[0, :, 0, 1::2]
    factor = gamma * np.exp(-1j * 10000.0 ** (-np.arange(0, value_dim, 2) / value_dim))
    state = np.zeros(value_dim // 2, dtype=complex)
    for i in range(seq):
        state = factor * state + complex_v[i]
        expected = np.stack([state.real, state.imag], axis=-1).ravel()
        np.testing.assert_allclose(attended[i], expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(normed[i], expected / np.sqrt((expected**2).mean()), rtol=0, atol=1e-8)
