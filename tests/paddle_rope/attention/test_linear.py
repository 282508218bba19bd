"""Linear attention: feature maps, normalizers, bounds of the denominator, decay, chunks and states."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, linear_attention, linear_attention_step, reference
from paddle_rope.attention import (
    MIN_DENOMINATOR,
    MIN_OVERLAP,
    OnePlusCosine,
    OrthogonalRandomFeatures,
    SoftmaxExp,
    elu_plus_one,
    exp,
    relu,
)
from tests.helpers.pairwise import pairwise
from tests.paddle_rope.attention.kernels import (
    KERNELS,
    assert_same_with_gradients,
    cast,
    ragged_mask,
    random_qkv,
    rope_of,
)

LINEAR = [name for name in KERNELS if "linear" in name]


def one_feature(x):
    """phi = (1, 0)."""
    return paddle.to_tensor([1.0, 0.0], dtype=x.dtype).expand(x.shape)


def unit_vectors(batch, seq, heads, dtype="float64"):
    """Values of which the outputs are the weights."""
    return paddle.eye(seq, dtype=dtype).unsqueeze([0, 2]).expand([batch, seq, heads, seq])


# feature maps and normalizers


def plain_maps(name, head_dim, mask):
    """The map and its formula for queries and for keys."""

    def softmax_over_keys(k):
        e = paddle.exp(k)
        if mask is not None:
            e = e * paddle.to_tensor(mask[:, :, np.newaxis, np.newaxis].astype(np.float64))
        return e / e.sum(axis=1, keepdim=True)

    def both(phi, formula):
        return phi, formula, formula

    if name == "favor":
        phi = OrthogonalRandomFeatures(head_dim, head_dim)
        projection = phi.projection.astype("float64")

        def formula(x):
            y = x / head_dim**0.25
            return paddle.exp(paddle.matmul(y, projection.t()) - (y * y).sum(axis=-1, keepdim=True) / 2)

        return both(phi, formula)
    return {
        "elu_plus_one": both(elu_plus_one, reference.elu_plus_one),
        "relu": both(lambda x: relu(x) + 0.1, lambda x: (x + x.abs()) / 2 + 0.1),
        "exp": both(exp, paddle.exp),
        "softmax_exp": (SoftmaxExp(), lambda q: paddle.exp(q) / paddle.exp(q).sum(-1, keepdim=True), softmax_over_keys),
    }[name]


@pytest.mark.equation("3.1", "3.6", "3.28", "3.30")
@pairwise(
    {
        "name": ["elu_plus_one", "relu", "exp", "softmax_exp", "favor"],
        "normalizer": ["unrotated", "rotated", "none"],
        "masked": [False, True],
        "options": [{}, {"decay": [0.9, 0.5]}, {"causal": True}],
    }
)
def test_every_feature_map_and_normalizer_equals_the_double_sum(name, normalizer, masked, options):
    if name == "softmax_exp" and "causal" in options:
        pytest.skip("the map looks at the whole sequence")
    qkv, mask = random_qkv(2, 7), ragged_mask(2, 7) if masked else None
    positions = np.arange(7) / 10  # no angle is beyond 90 degrees: rotated denominators are positive too
    rope = rope_of(qkv[0], positions=paddle.to_tensor(positions))
    phi, phi_q, phi_k = plain_maps(name, 4, mask)
    key_mask = None if mask is None else paddle.to_tensor(mask)
    attended = linear_attention(*qkv, rope, key_mask, phi, normalizer, chunk_size=3, **options)
    expected = reference.linear_attention(*qkv, positions, mask, phi_q, phi_k, normalizer, **options)
    # a sum that cancels is far from its root mean square
    assert_same_with_gradients(attended, expected, qkv, qkv, 1e-7 if normalizer == "none" else 1e-9)


@pytest.mark.equation("3.5", "3.20", "3.21")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 5e-5), ("float64", 1e-9)])
def test_one_plus_cosine_equals_the_double_sum_and_stays_a_probability(causal, dtype, tolerance):
    exact, mask = random_qkv(2, 9), None if causal else ragged_mask(2, 9)
    inputs = cast(exact, dtype)
    key_mask = None if mask is None else paddle.to_tensor(mask)
    options = {"feature_map": OnePlusCosine(), "normalizer": "rotated", "causal": causal}
    attended = linear_attention(*inputs, rope_of(inputs[0]), key_mask, **options)
    expected = reference.cosine_attention(*exact, range(9), mask, causal=causal)
    assert_same_with_gradients(attended, expected, inputs, exact, tolerance)
    q, k, _ = exact
    weights = linear_attention(q, k, unit_vectors(2, 9, 2), rope_of(q), key_mask, **options).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert (weights >= 0).all()
    segments = paddle.to_tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2], [3] * 9])
    packed = linear_attention(q, k, unit_vectors(2, 9, 2), rope_of(q), segment_ids=segments, **options).numpy()
    np.testing.assert_allclose(packed.sum(axis=-1), 1, rtol=0, atol=1e-12)


def test_elu_plus_one_with_rope_in_the_numerator_is_no_probability():
    q, k, _ = random_qkv(1, 200, 1, 8)
    weights = linear_attention(q, k, unit_vectors(1, 200, 1), rope_of(q)).numpy()
    assert weights.min() < 0


@pytest.mark.parametrize("feature_map, normalizer", [(SoftmaxExp(), "unrotated"), (OnePlusCosine(), "rotated")])
def test_weights_of_maps_that_give_a_probability_sum_to_one_with_decay(feature_map, normalizer):
    q, k, _ = random_qkv(1, 9)
    rope = rope_of(q) if normalizer == "rotated" else None
    options = {"feature_map": feature_map, "normalizer": normalizer, "decay": [0.9, 0.5]}
    weights = linear_attention(q, k, unit_vectors(1, 9, 2), rope, **options).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert (weights >= 0).all()


@pytest.mark.equation("3.4")
def test_relative_positions_alone_count_with_more_features_than_head_dim():
    q, k, v = random_qkv(1, 6)
    phi, rotary = OrthogonalRandomFeatures(4, 10), RotaryPositionEmbedding(10)
    here, there = (
        linear_attention(q, k, v, rotary.cos_sin(6, offset, "float64"), feature_map=phi) for offset in (0, 100)
    )
    np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=0, atol=1e-10)


# the denominator


@pytest.mark.equation("3.4")
def test_the_denominator_is_positive_and_unrotated():
    # with phi = (1, 0) the rotated products are cos(i - j), of either sign; the unrotated ones are 1 and sum to seq
    seq = 23
    q, k, v = random_qkv(1, seq, 1, 2, 2)
    attended = linear_attention(q, k, v, rope_of(q), feature_map=one_feature)
    i = np.arange(seq)
    expected = np.cos(i[:, np.newaxis] - i) @ v.numpy()[0, :, 0] / seq
    np.testing.assert_allclose(attended.numpy()[0, :, 0], expected, rtol=0, atol=1e-12)


@pytest.mark.equation("3.3")
def test_without_rotation_outputs_are_averages_of_the_values():
    q, k, v = random_qkv(2, 11, value_dim=5)
    attended = linear_attention(6 * q, 6 * k, v)
    assert bool((attended <= v.max(axis=1, keepdim=True)).all())
    assert bool((attended >= v.min(axis=1, keepdim=True)).all())


def test_a_rotated_denominator_falls_under_the_bound_and_an_unrotated_one_does_not():
    q, k, v = random_qkv(2, 300)
    rotary = RotaryPositionEmbedding(4, base=2.0)  # no slow pair: rotated sums of either sign
    rope = rotary.cos_sin(300, dtype="float64")
    phi_q, phi_k = (elu_plus_one(x).numpy() for x in (q, k))
    turned_q, turned_k = (rotary(elu_plus_one(x)).numpy() for x in (q, k))
    numerator = np.einsum("bihd,bjhd,bjhv->bihv", turned_q, turned_k, v.numpy())
    share = {}
    for normalizer, pair in (("unrotated", (phi_q, phi_k)), ("rotated", (turned_q, turned_k))):
        denominator = np.einsum("bihd,bjhd->bih", *pair)[..., np.newaxis]
        share[normalizer] = (denominator < MIN_DENOMINATOR[normalizer]).mean()
        attended = linear_attention(q, k, v, rope, normalizer=normalizer)
        expected = numerator / np.maximum(denominator, MIN_DENOMINATOR[normalizer])
        np.testing.assert_allclose(attended.numpy(), expected, rtol=1e-6, atol=1e-6)
    assert share["unrotated"] == 0 and 0.1 < share["rotated"] < 0.9


@pytest.mark.equation("3.7")
def test_a_denominator_under_the_bound_is_cut_at_the_bound():
    q, k, v = random_qkv(1, 3, 1, 2, 2)
    rope = rope_of(q, positions=paddle.to_tensor([0.0, np.pi, np.pi]))
    attended = linear_attention(q, k, v, rope, None, one_feature, "rotated").numpy()[0, :, 0]
    values = v.numpy()[0, :, 0]
    numerator = values[0] - values[1] - values[2]
    np.testing.assert_allclose(attended[0], numerator / MIN_DENOMINATOR["rotated"], rtol=1e-10)
    np.testing.assert_allclose(attended[1], -numerator, rtol=1e-10)


@pytest.mark.equation("3.7")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["elu", "favor"])
def test_tiny_features_are_averaged_as_well_as_others(kind, dtype):
    # with values 1 an average is 1, however small the features: elu + 1 at -12 is 6e-6, FAVOR+ of long keys less
    q, k, v = random_qkv(1, 40, 2, 16, 3, dtype=dtype)
    feature_map = elu_plus_one if kind == "elu" else OrthogonalRandomFeatures(16)
    q, k = (x.detach() * 0.01 - 12 if kind == "elu" else x.detach() * 5 for x in (q, k))
    k.stop_gradient = False
    attended = linear_attention(q, k, paddle.ones_like(v), feature_map=feature_map)
    np.testing.assert_allclose(attended.numpy(), 1, rtol=1e-5)
    attended = linear_attention(q, k, v, feature_map=feature_map)
    assert bool(paddle.isfinite(paddle.grad(attended.sum(), [k])[0]).all())
    tiny = linear_attention(q, k, paddle.ones_like(v), feature_map=lambda x: paddle.full_like(x, 3e-16))
    np.testing.assert_allclose(tiny.numpy(), 1, rtol=1e-5)


@pytest.mark.equation("3.7")
@pytest.mark.parametrize("name", [name for name in LINEAR if "norm" not in name])
def test_features_that_hardly_overlap_are_bounded_as_in_the_double_sum(name):
    q, k, v = random_qkv(2, 7)
    apart = paddle.to_tensor([30.0, -30.0, 30.0, -30.0], dtype="float64")  # most pairs have one small factor each
    q, k = 20 * q.detach() + apart, 20 * k.detach() - apart
    q.stop_gradient = k.stop_gradient = False
    attended = KERNELS[name](q, k, v, rope_of(q))
    expected = KERNELS[name].reference(q, k, v, range(7))
    assert_same_with_gradients(attended, expected, [q, k, v], [q, k, v], tolerance=1e-8)
    assert float(attended.abs().max()) > 10  # some are bounded: otherwise they are averages


@pytest.mark.equation("3.7")
@pytest.mark.parametrize(
    "phi, q, k", [(relu, (1, -1), (-1, 1)), (elu_plus_one, (30, -30), (-30, 30))], ids=["relu", "elu_plus_one"]
)
def test_a_rotated_numerator_without_overlap_of_features_stays_within_the_bound(phi, q, k):
    # phi(q) . phi(k) is 0, or nearly; R_1 phi(k) has the sine of 1 along phi(q)
    q, k = (paddle.to_tensor(x, dtype="float32").expand([1, 2, 1, 2]) for x in (q, k))
    v, rotary, state = paddle.ones([1, 2, 1, 1]), RotaryPositionEmbedding(2), None
    both = linear_attention(q, k, v, rotary.cos_sin(2), feature_map=phi).flatten().numpy()
    np.testing.assert_allclose(both, np.array([-1, 1]) * np.sin(1) / MIN_OVERLAP, rtol=1e-3)
    causal = linear_attention(q, k, v, rotary.cos_sin(2), feature_map=phi, causal=True).flatten().numpy()
    np.testing.assert_allclose(causal, both * [0, 1], rtol=1e-3, atol=1e-3)
    for i, expected in enumerate(causal):
        token = (x[:, i : i + 1] for x in (q, k, v))
        state, y = linear_attention_step(state, *token, rotary.cos_sin(1, offset=i), feature_map=phi)
        assert y.item() == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.equation("3.7")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("phi", [relu, elu_plus_one], ids=["relu", "elu_plus_one"])
def test_no_output_exceeds_the_largest_value_by_more_than_the_bound(phi, causal):
    q, k, v = random_qkv(16, 16, 8, 8, 8, dtype="float32")
    attended = linear_attention(5 * q, 5 * k, v, rope_of(q), feature_map=phi, causal=causal)
    assert float(attended.abs().max()) <= 8 / MIN_OVERLAP * float(v.abs().max())
    assert all(float(x.abs().max()) < 1e5 for x in paddle.grad(attended.sum(), [q, k, v]))


@pytest.mark.equation("3.16")
def test_a_query_or_all_keys_without_positive_feature_give_zero():
    q, k, v = random_qkv(1, 4)
    for attended in (
        linear_attention(-q.abs(), k, v, feature_map=relu),
        linear_attention(q, -k.abs(), v, feature_map=relu),
    ):
        assert (attended.numpy() == 0).all()
        assert all(np.isfinite(x.numpy()).all() for x in paddle.grad(attended.sum(), [q, k, v]))


@pytest.mark.equation("3.8")
def test_without_normalizer_outputs_have_root_mean_square_one_whatever_the_length():
    for seq in (1, 30, 3000):
        q, k, v = random_qkv(2, seq, value_dim=5)
        attended = linear_attention(q, k, v, rope_of(q), normalizer="none")
        np.testing.assert_allclose((attended**2).mean(axis=-1).numpy(), 1, rtol=1e-4)


@pytest.mark.equation("3.9", "3.38")
@pytest.mark.parametrize("normalizer", ["rotated", "none"])
def test_padding_alone_gives_zero_with_every_map(normalizer):
    qkv, mask = random_qkv(2, 3, dtype="float32"), paddle.to_tensor([[True] * 3, [False] * 3])
    for phi in (elu_plus_one, SoftmaxExp(), OnePlusCosine(), OrthogonalRandomFeatures(4)):
        attended = linear_attention(*qkv, None, mask, phi, normalizer)
        for x in (attended, *paddle.grad(attended.sum(), qkv)):
            assert np.isfinite(x.numpy()).all()
            assert (x[1].numpy() == 0).all()


# precision


@pytest.mark.equation("3.36")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "phi, normalizer",
    [(elu_plus_one, "unrotated"), (elu_plus_one, "none"), (OnePlusCosine(), "rotated"), (relu, "unrotated")],
)
def test_sums_beyond_half_precision_are_right(phi, normalizer, dtype):
    # the denominator is 5000 * 8 * 16 = 640,000: float16 has no such number, bfloat16 stops counting at 256
    q = paddle.full([1, 5000, 1, 8], 3.0).astype(dtype)
    v = paddle.full([1, 5000, 1, 3], 100.0).astype(dtype)
    attended = linear_attention(q, q, v, feature_map=phi, normalizer=normalizer)
    assert attended.dtype == q.dtype
    np.testing.assert_allclose(attended.astype("float32").numpy(), 1 if normalizer == "none" else 100, rtol=1.6e-2)


@pytest.mark.equation("3.37")
def test_sums_are_taken_outside_auto_cast():
    # On CPU auto_cast does nothing, so its state is set by hand and read where the sums are taken.
    tracer = paddle.base.framework._dygraph_tracer()
    outside, levels = tracer._amp_level, []

    def phi(x):
        levels.append(tracer._amp_level)
        return elu_plus_one(x)

    q, k, v = random_qkv(1, 3, dtype="float32")
    try:
        tracer._amp_level = paddle.base.core.AmpLevel.O1
        linear_attention(q, k, v, feature_map=phi)
        after = tracer._amp_level
    finally:
        tracer._amp_level = outside
    assert levels == [paddle.base.core.AmpLevel.O0] * 2
    assert after == paddle.base.core.AmpLevel.O1


# chunks, decay, states


@pytest.mark.equation("3.24", "3.33")
@pytest.mark.parametrize("seq", [1, 13, 128, 131, 300])
@pytest.mark.parametrize("options", [{"causal": True}, {"decay": [0.95, 1.0]}, {"causal": True, "decay": [0.95, 1.0]}])
def test_outputs_do_not_depend_on_the_size_of_the_chunks(options, seq):
    qkv, mask = random_qkv(2, seq), paddle.to_tensor(ragged_mask(2, seq))
    whole = linear_attention(*qkv, rope_of(qkv[0]), mask, chunk_size=seq, **options).numpy()
    for chunk_size in (1, 5, 64, seq + 1, 10_000, None):
        attended = linear_attention(*qkv, rope_of(qkv[0]), mask, chunk_size=chunk_size, **options).numpy()
        np.testing.assert_allclose(attended, whole, rtol=0, atol=1e-11)


@pytest.mark.equation("3.29")
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 5, 11, 64])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"decay": [0.9, 0.5]}])
def test_sums_within_segments_do_not_depend_on_the_size_of_the_chunks(chunk_size, options):
    qkv, segments = random_qkv(), [[3, 3, 3, -1, -1, 8, 8, 8, 8, 0, 7], [5] * 11]
    attended = linear_attention(*qkv, segment_ids=paddle.to_tensor(segments), chunk_size=chunk_size, **options)
    expected = reference.linear_attention(*qkv, segment_ids=segments, **options)
    assert_same_with_gradients(attended, expected, qkv, qkv, 1e-10)


@pytest.mark.equation("2.4", "3.30")
@pytest.mark.parametrize("chunk_size", [4, None])
@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
def test_a_gamma_of_one_is_no_decay_and_one_segment_is_none(chunk_size, packed):
    qkv, options = random_qkv(), {"key_mask": paddle.to_tensor(ragged_mask(2, 11)), "chunk_size": chunk_size}
    plain = linear_attention(*qkv, rope_of(qkv[0]), **options)
    if packed:
        options["segment_ids"] = paddle.full([2, 11], 4, dtype="int32")
    decayed = linear_attention(*qkv, rope_of(qkv[0]), **options, decay=[1.0, 1.0])
    assert_same_with_gradients(decayed, plain, qkv, qkv, 1e-9)


@pytest.mark.equation("3.32")
def test_both_sides_of_a_decay_share_the_diagonal():
    q, k, _ = random_qkv(1, 9)

    def weights(q, k, **options):  # those of unit vectors, over that of the diagonal
        shares = linear_attention(q, k, unit_vectors(1, 9, 2), decay=[0.9, 0.6], chunk_size=4, **options).numpy()
        return shares / shares[:, range(9), :, range(9)].transpose(1, 0, 2)[..., np.newaxis]

    left = weights(q, k, causal=True)
    right = weights(q.flip(1), k.flip(1), causal=True)[:, ::-1, :, ::-1]
    diagonal = np.eye(9)[np.newaxis, :, np.newaxis]
    np.testing.assert_allclose(weights(q, k), left + right - diagonal, rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_a_trained_decay_has_the_gradient_of_the_double_sum(causal):
    qkv = [*random_qkv(), paddle.to_tensor([0.9, 0.3], dtype="float64", stop_gradient=False)]
    options = {"decay": qkv[3], "causal": causal}
    attended = linear_attention(*qkv[:3], rope_of(qkv[0]), chunk_size=3, **options)
    assert_same_with_gradients(attended, reference.linear_attention(*qkv[:3], range(11), **options), qkv, qkv, 1e-9)


@pytest.mark.equation("3.25")
def test_the_last_token_sees_what_it_sees_in_bidirectional_attention():
    q, k, v = random_qkv(2, 70)
    causal, both = (linear_attention(q, k, v, rope_of(q), causal=causal) for causal in (True, False))
    np.testing.assert_allclose(causal[:, -1].numpy(), both[:, -1].numpy(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(causal[:, 0].numpy(), v[:, 0].numpy(), rtol=0, atol=1e-12)


@pytest.mark.equation("3.27", "4.8")
@pytest.mark.parametrize(
    "normalizer, decay",
    [("unrotated", None), ("unrotated", [0.99, 0.5]), ("rotated", [1.0, 0.9]), ("none", [0.9, 1.0])],
)
def test_a_thousand_steps_equal_the_causal_form_and_leave_its_state(normalizer, decay):
    q, k, v = (x.detach() for x in random_qkv(1, 1000, 2, 8, 3))
    rotary = RotaryPositionEmbedding(8)
    phi = OnePlusCosine() if normalizer == "rotated" else elu_plus_one
    options = {"feature_map": phi, "normalizer": normalizer, "decay": decay}
    state, steps = None, []
    for i in range(1000):
        token = (x[:, i : i + 1] for x in (q, k, v))
        state, y = linear_attention_step(state, *token, rotary.cos_sin(1, i, "float64"), **options)
        steps.append(y)
    parallel = linear_attention(q, k, v, rope_of(q), causal=True, **options)
    np.testing.assert_allclose(paddle.concat(steps, axis=1).numpy(), parallel.numpy(), rtol=1e-6, atol=1e-7)
    first, _ = linear_attention_step(None, *(x[:, :410] for x in (q, k, v)), rope_of(q[:, :410]), **options)
    rest = rotary.cos_sin(590, 410, "float64")
    at_once, _ = linear_attention_step(first, *(x[:, 410:] for x in (q, k, v)), rest, **options)
    assert first.length == 410 and at_once.length == state.length == 1000
    for found, expected in zip(at_once[:2], state[:2]):
        assert (found is None) == (expected is None) == (normalizer == "none" and expected is None)
        if found is not None:
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8, atol=1e-9)
    features = 9 if normalizer == "rotated" else 8
    assert state.key_values.shape == [1, 2, features, 3]


@pytest.mark.equation("3.27", "4.8")
def test_states_are_float32_at_least_are_not_changed_and_pass_gradients_back():
    halves = cast(random_qkv(1, 3), "float16")
    state, y = linear_attention_step(None, *halves)
    assert y.dtype == paddle.float16 and state.key_values.dtype == state.keys.dtype == paddle.float32
    before = [state.key_values.numpy().copy(), state.keys.numpy().copy()]
    branches = [linear_attention_step(state, *(x[:, i : i + 1] for x in halves))[1].numpy() for i in (1, 2, 1)]
    np.testing.assert_array_equal(branches[0], branches[2])
    np.testing.assert_array_equal(state.key_values.numpy(), before[0])
    np.testing.assert_array_equal(state.keys.numpy(), before[1])
    # RoPE of the tokens before has been applied: gradients of all tokens are those of the whole
    decay = paddle.to_tensor([0.8, 0.3], dtype="float64", stop_gradient=False)
    inputs = [*random_qkv(2, 11), decay]
    pieces = KERNELS["recurrent linear"](*inputs[:3], rope_of(inputs[0]), decay=decay)
    whole = linear_attention(*inputs[:3], rope_of(inputs[0]), decay=decay, causal=True)
    assert_same_with_gradients(pieces, whole, inputs, inputs, 1e-10)


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


@pytest.mark.parametrize(
    "options, words",
    [
        ({"chunk_size": 0}, "chunk_size must be positive"),
        ({"decay": [0.5]}, "2 numbers in"),
        ({"decay": [0.5, 0.0]}, "2 numbers in"),
        ({"decay": [0.5, 1.1]}, "2 numbers in"),
        ({"decay": [0.5, float("nan")]}, "2 numbers in"),
        ({"decay": 0.5}, "2 numbers in"),
        ({"decay": paddle.ones([1, 2, 4])}, "2 numbers in"),
        ({"decay": paddle.to_tensor([0.5, float("nan")])}, "2 numbers in"),
        ({"feature_map": OnePlusCosine()}, "normalizer='rotated'"),
        ({"normalizer": "Rotated"}, "normalizer must be one of unrotated, rotated, none"),
        ({"normalizer": None}, "normalizer must be one of"),
    ],
    ids=lambda value: str(list(value)) if isinstance(value, dict) else "",
)
def test_impossible_options_are_an_error(options, words):
    qkv = random_qkv(1, 3)
    for causal in (False, True):
        with pytest.raises(ValueError, match=words):
            linear_attention(*qkv, causal=causal, **options)
    if "chunk_size" not in options:
        with pytest.raises(ValueError, match=words):
            linear_attention_step(None, *qkv, **options)


def test_a_map_over_the_sequence_is_neither_causal_nor_for_packed_texts():
    qkv = random_qkv(1, 5)
    for options in ({"causal": True}, {"segment_ids": paddle.zeros([1, 5], dtype="int64")}):
        with pytest.raises(ValueError, match="whole sequence"):
            linear_attention(*qkv, feature_map=SoftmaxExp(), **options)
    with pytest.raises(ValueError, match="whole sequence"):
        linear_attention_step(None, *qkv, feature_map=SoftmaxExp())
