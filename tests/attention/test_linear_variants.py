"""Bidirectional linear attention with every feature map and normalizer, against the double sum."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, causal_linear_attention, linear_attention, reference
from paddle_rope.attention import (
    MIN_DENOMINATOR,
    MIN_OVERLAP,
    OnePlusCosine,
    OrthogonalRandomFeatures,
    SoftmaxExp,
    elu_plus_one,
    exp,
    linear_attention_step,
    relu,
)
from tests.attention.qkv import SHAPES, ragged_mask, random_qkv
from tests.pairwise import pairwise


def slowly(rotary, seq):
    """Positions 0, 0.1, 0.2, ...: no angle is beyond 90 degrees, so that rotated denominators are positive too."""
    positions = np.arange(seq) / 10
    return lambda x: rotary(x, positions=paddle.to_tensor(positions)), positions


def plain_maps(name, head_dim, mask):
    """The map and its formula for queries and for keys."""

    def softmax_over_keys(k):
        e = paddle.exp(k)
        if mask is not None:
            e = e * paddle.to_tensor(mask[:, np.newaxis, :, np.newaxis].astype(np.float64))
        return e / e.sum(axis=2, keepdim=True)

    def both(phi, formula):
        return phi, formula, formula

    if name == "favor":
        phi = OrthogonalRandomFeatures(head_dim, head_dim)
        projection = phi.projection.astype("float64")

        def formula(x):
            y = x / head_dim**0.25
            return paddle.exp(paddle.matmul(y, projection.t()) - (y * y).sum(axis=-1, keepdim=True) / 2)

        return phi, formula, formula
    return {
        "elu_plus_one": both(elu_plus_one, reference.elu_plus_one),
        "relu": both(lambda x: relu(x) + 0.1, lambda x: (x + x.abs()) / 2 + 0.1),
        "exp": both(exp, paddle.exp),
        "softmax_exp": (SoftmaxExp(), lambda q: paddle.exp(q) / paddle.exp(q).sum(-1, keepdim=True), softmax_over_keys),
    }[name]


def assert_same_with_gradients(attended, expected, inputs, exact, tolerance=1e-10):
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((attended * towards.astype(attended.dtype)).sum(), inputs)
    expected_gradients = paddle.grad((expected * towards).sum(), exact)
    for name, gradient, expected_gradient in zip("qkv", gradients, expected_gradients):
        np.testing.assert_allclose(
            gradient.numpy(), expected_gradient.numpy(), rtol=tolerance, atol=tolerance, err_msg=name
        )


@pairwise(
    {
        "name": ["elu_plus_one", "relu", "exp", "softmax_exp", "favor"],
        "normalizer": ["unrotated", "rotated", "none"],
        "shape, masked, rotated": [
            *((SHAPES[0], False, True), (SHAPES[1], True, True), (SHAPES[1], True, False), (SHAPES[2], False, True)),
        ],
    }
)
def test_outputs_and_gradients_equal_the_double_sum(shape, masked, rotated, name, normalizer):
    batch, _, seq, head_dim, _ = shape
    mask = ragged_mask(batch, seq) if masked else None
    rotate, positions = slowly(RotaryPositionEmbedding(head_dim), seq) if rotated else (None, None)
    phi, phi_q, phi_k = plain_maps(name, head_dim, mask)
    qkv = random_qkv(*shape)
    key_mask = None if mask is None else paddle.to_tensor(mask)
    attended = linear_attention(*qkv, rotate, key_mask, phi, normalizer)
    expected = reference.linear_attention(*qkv, positions, mask, phi_q, phi_k, normalizer)
    # a sum that cancels is far from its root mean square: value_dim 1 gives signs, of slope 0 up to the bound
    tolerance = 1e-8 if normalizer == "none" else 1e-10
    assert_same_with_gradients(attended, expected, qkv, qkv, tolerance)


@pairwise(
    {
        "shape": SHAPES,
        "rotated": [False, True],
        "masked": [False, True],
        "dtype, tolerance": [("float32", 2e-5), ("float64", 1e-10)],
    }
)
def test_one_plus_cosine_equals_the_double_sum(shape, dtype, tolerance, rotated, masked):
    batch, _, seq, head_dim, _ = shape
    mask = ragged_mask(batch, seq) if masked else None
    exact = random_qkv(*shape)
    inputs = [x.detach().astype(dtype) for x in exact]
    for x in inputs:
        x.stop_gradient = False
    rotate = RotaryPositionEmbedding(head_dim) if rotated else None
    key_mask = None if mask is None else paddle.to_tensor(mask)
    attended = linear_attention(*inputs, rotate, key_mask, OnePlusCosine(), "rotated")
    expected = reference.cosine_attention(*exact, range(seq) if rotated else None, mask)
    assert_same_with_gradients(attended, expected, inputs, exact, tolerance)


@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
def test_one_plus_cosine_with_rope_stays_a_probability(masked):
    seq = 200
    q, k, _ = random_qkv(2, 2, seq, 8, 1)
    v = paddle.eye(seq, dtype="float64").expand([2, 2, seq, seq])  # the outputs are the weights
    mask = ragged_mask(2, seq) if masked else np.ones((2, seq), dtype=bool)
    rotary = RotaryPositionEmbedding(8)
    weights = linear_attention(q, k, v, rotary, paddle.to_tensor(mask), OnePlusCosine(), "rotated").numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert (weights >= 0).all()
    assert (weights.transpose([0, 3, 1, 2])[~mask] == 0).all()
    straight = linear_attention(q, k, v, None, paddle.to_tensor(mask), OnePlusCosine(), "rotated").numpy()
    assert np.abs(weights - straight).max() > 1e-4
    numerator_only = linear_attention(q, k, v, rotary, paddle.to_tensor(mask)).numpy()
    assert numerator_only.min() < 0, "elu + 1 with RoPE in the numerator is no probability"


def test_a_rotated_denominator_falls_under_the_bound_and_an_unrotated_one_does_not():
    seq = 300
    q, k, v = random_qkv(2, 2, seq, 4, 3)
    rotary = RotaryPositionEmbedding(4, base=2.0)  # no slow pair: rotated sums of either sign
    phi_q, phi_k = (elu_plus_one(x).numpy() for x in (q, k))
    turned_q, turned_k = (rotary(elu_plus_one(x)).numpy() for x in (q, k))
    numerator = np.einsum("bhid,bhjd,bhjv->bhiv", turned_q, turned_k, v.numpy())
    share = {}
    for normalizer, pair in (("unrotated", (phi_q, phi_k)), ("rotated", (turned_q, turned_k))):
        denominator = np.einsum("bhid,bhjd->bhi", *pair)[..., np.newaxis]
        share[normalizer] = (denominator < MIN_DENOMINATOR[normalizer]).mean()
        attended = linear_attention(q, k, v, rotary, normalizer=normalizer)
        np.testing.assert_allclose(
            attended.numpy(), numerator / np.maximum(denominator, MIN_DENOMINATOR[normalizer]), rtol=1e-6, atol=1e-6
        )
    assert share["unrotated"] == 0 and 0.1 < share["rotated"] < 0.9


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["elu", "favor"])
def test_tiny_features_are_averaged_as_well_as_others(kind, dtype):
    # with values 1 an average is 1, however small the features: elu + 1 at -12 is 6e-6, FAVOR+ of long keys less
    q, k, v = random_qkv(1, 2, 40, 16, 3, dtype=dtype)
    feature_map = elu_plus_one if kind == "elu" else OrthogonalRandomFeatures(16)
    q, k = (x.detach() * 0.01 - 12 if kind == "elu" else x.detach() * 5 for x in (q, k))
    k.stop_gradient = False
    attended = linear_attention(q, k, paddle.ones_like(v), feature_map=feature_map)
    np.testing.assert_allclose(attended.numpy(), 1, rtol=1e-5)
    attended = linear_attention(q, k, v, feature_map=feature_map)
    assert bool(paddle.isfinite(paddle.grad(attended.sum(), [k])[0]).all())
    tiny = linear_attention(q, k, paddle.ones_like(v), feature_map=lambda x: paddle.full_like(x, 3e-16))
    np.testing.assert_allclose(tiny.numpy(), 1, rtol=1e-5)


def test_a_denominator_under_the_bound_is_cut_at_the_bound():
    def phi(x):
        return paddle.to_tensor([1.0, 0.0], dtype=x.dtype).expand(x.shape)

    q, k, v = random_qkv(1, 1, 3, 2, 2)
    rotary = RotaryPositionEmbedding(2)
    half_turn = paddle.to_tensor([0.0, np.pi, np.pi])
    attended = linear_attention(q, k, v, lambda x: rotary(x, positions=half_turn), None, phi, "rotated")
    values = v.numpy()[0, 0]
    numerator = values[0] - values[1] - values[2]
    np.testing.assert_allclose(attended.numpy()[0, 0, 0], numerator / MIN_DENOMINATOR["rotated"], rtol=1e-10)
    np.testing.assert_allclose(attended.numpy()[0, 0, 1], -numerator, rtol=1e-10)


def in_two_pieces(q, k, v, rotary, **options):
    state, first = causal_linear_attention(*(x[:, :, :4] for x in (q, k, v)), rotary, return_state=True, **options)
    rest = (x[:, :, 4:] for x in (q, k, v))
    return paddle.concat([first, causal_linear_attention(*rest, partial(rotary, offset=4), state=state, **options)], 2)


SEGMENTS = [[0, 0, 0, 1, 1, 2, 2], [3] * 7]
FORMS = {
    "bidirectional": (linear_attention, {}, {}),
    "packed": (linear_attention, {"segment_ids": paddle.to_tensor(SEGMENTS)}, {"segment_ids": SEGMENTS}),
    "decay": (linear_attention, {"decay": [0.9, 0.5], "chunk_size": 3}, {"decay": [0.9, 0.5]}),
    "causal": (causal_linear_attention, {"chunk_size": 3}, {"causal": True}),
    "causal, decay": (
        causal_linear_attention,
        {"decay": [0.9, 0.5], "chunk_size": 3},
        {"decay": [0.9, 0.5], "causal": True},
    ),
    "with a state": (in_two_pieces, {"decay": [0.9, 0.5]}, {"decay": [0.9, 0.5], "causal": True}),
}


@pytest.mark.parametrize("name", FORMS)
def test_features_that_hardly_overlap_are_bounded_as_in_the_double_sum(name):
    attend, options, plain_options = FORMS[name]
    q, k, v = random_qkv(2, 2, 7, 4, 3)
    apart = paddle.to_tensor([30.0, -30.0, 30.0, -30.0], dtype="float64")  # most pairs have one small factor each
    q, k = 20 * q.detach() + apart, 20 * k.detach() - apart
    q.stop_gradient = k.stop_gradient = False
    attended = attend(q, k, v, RotaryPositionEmbedding(4), **options)
    expected = reference.linear_attention(q, k, v, range(7), **plain_options)
    assert_same_with_gradients(attended, expected, [q, k, v], [q, k, v], tolerance=1e-8)
    assert float(attended.abs().max()) > 10  # some are bounded: otherwise they are averages


@pytest.mark.parametrize(
    "phi, q, k",
    [(relu, (1, -1), (-1, 1)), (elu_plus_one, (30, -30), (-30, 30))],
    ids=["relu", "elu_plus_one"],
)
def test_a_rotated_numerator_without_overlap_of_features_stays_within_the_bound(phi, q, k):
    # phi(q) . phi(k) is 0, or nearly; R_1 phi(k) has the sine of 1 along phi(q)
    q, k = (paddle.to_tensor(x, dtype="float32").expand([1, 1, 2, 2]) for x in (q, k))
    v, rotary, state = paddle.ones([1, 1, 2, 1]), RotaryPositionEmbedding(2), None
    both = linear_attention(q, k, v, rotary, feature_map=phi).flatten().numpy()
    np.testing.assert_allclose(both, np.array([-1, 1]) * np.sin(1) / MIN_OVERLAP, rtol=1e-3)
    causal = causal_linear_attention(q, k, v, rotary, feature_map=phi).flatten().numpy()
    np.testing.assert_allclose(causal, both * [0, 1], rtol=1e-3, atol=1e-3)
    for i, expected in enumerate(causal):
        here = slice(i, i + 1)
        state, y = linear_attention_step(state, q[:, :, here], k[:, :, here], v[:, :, here], rotary, phi)
        assert y.item() == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("phi", [relu, elu_plus_one], ids=["relu", "elu_plus_one"])
def test_no_output_exceeds_the_largest_value_by_more_than_the_bound(phi):
    rotary = RotaryPositionEmbedding(8)
    for kernel in (linear_attention, causal_linear_attention):
        q, k, v = random_qkv(16, 8, 16, 8, 8, dtype="float32")
        attended = kernel(5 * q, 5 * k, v, rotary, feature_map=phi)
        gradients = paddle.grad(attended.sum(), [q, k, v])
        assert float(attended.abs().max()) <= 8 / MIN_OVERLAP * float(v.abs().max())
        assert all(float(x.abs().max()) < 1e5 for x in gradients)


@pytest.mark.parametrize("phi", [relu], ids=["relu"])
def test_a_query_or_all_keys_without_positive_feature_give_zero(phi):
    q, k, v = random_qkv(1, 1, 4, 4, 2)
    for attended in (
        linear_attention(-q.abs(), k, v, feature_map=phi),
        linear_attention(q, -k.abs(), v, feature_map=phi),
    ):
        assert (attended.numpy() == 0).all()
        assert all(np.isfinite(x.numpy()).all() for x in paddle.grad(attended.sum(), [q, k, v]))


def test_without_normalizer_outputs_have_root_mean_square_one_whatever_the_length():
    for seq in (1, 30, 3000):
        q, k, v = random_qkv(2, 2, seq, 4, 5)
        attended = linear_attention(q, k, v, RotaryPositionEmbedding(4), normalizer="none")
        np.testing.assert_allclose((attended**2).mean(axis=-1).numpy(), 1, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("phi, normalizer", [(elu_plus_one, "none"), (OnePlusCosine(), "rotated"), (relu, "unrotated")])
def test_sums_beyond_half_precision_are_right(phi, normalizer, dtype):
    q = paddle.full([1, 1, 5000, 8], 3.0).astype(dtype)
    v = paddle.full([1, 1, 5000, 3], 100.0).astype(dtype)
    attended = linear_attention(q, q, v, feature_map=phi, normalizer=normalizer)
    assert attended.dtype == q.dtype
    np.testing.assert_allclose(attended.astype("float32").numpy(), 1 if normalizer == "none" else 100, rtol=1e-2)


@pytest.mark.parametrize("normalizer", ["rotated", "none"])
def test_padding_alone_gives_zero(normalizer):
    q, k, v = random_qkv(2, 1, 3, 4, 2, dtype="float32")
    mask = paddle.to_tensor([[True, True, True], [False, False, False]])
    for phi in (elu_plus_one, SoftmaxExp(), OnePlusCosine(), OrthogonalRandomFeatures(4)):
        attended = linear_attention(q, k, v, None, mask, phi, normalizer)
        gradients = paddle.grad(attended.sum(), [q, k, v])
        for x in (attended, *gradients):
            assert np.isfinite(x.numpy()).all()
            assert (x[1].numpy() == 0).all()


def test_relative_positions_alone_count_with_more_features_than_head_dim():
    q, k, v = random_qkv(1, 2, 6, 4, 3)
    phi, rotary = OrthogonalRandomFeatures(4, 10), RotaryPositionEmbedding(10)
    attended = linear_attention(q, k, v, rotary, feature_map=phi)
    shifted = linear_attention(q, k, v, lambda x: rotary(x, offset=100), feature_map=phi)
    np.testing.assert_allclose(shifted.numpy(), attended.numpy(), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"normalizer": "Rotated"}, "normalizer must be one of unrotated, rotated, none"),
        ({"normalizer": None}, "normalizer must be one of"),
        ({"feature_map": OnePlusCosine()}, "normalizer='rotated'"),
    ],
    ids=["spelling", "None", "cosine"],
)
def test_options_that_contradict_each_other_are_an_error(options, words):
    with pytest.raises(ValueError, match=words):
        linear_attention(*random_qkv(1, 1, 3, 4, 2), **options)
