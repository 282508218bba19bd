"""Linear attention: feature maps, normalizers, bounds of the denominator, precision."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, linear_attention, linear_attention_step, reference
from paddle_rope.attention import linear
from paddle_rope.attention.feature_maps import (
    OnePlusCosine,
    OrthogonalRandomFeatures,
    SoftmaxExp,
    elu_plus_one,
    exp,
    relu,
)
from paddle_rope.attention.linear import MIN_DENOMINATOR
from tests.helpers.comparison import assert_close, assert_same, cast
from tests.helpers.pairwise import pairwise
from tests.paddle_rope.attention.kernels import (
    FORMS,
    KERNELS,
    ragged_mask,
    random_features,
    random_qkv,
    rope_of,
    softmax_over_keys,
)

LINEAR = [name for name in KERNELS if "linear" in name and "norm" not in name]
pytestmark = pytest.mark.usefixtures("native_operators")


def one_feature(x):
    """phi = (1, 0)."""
    return paddle.to_tensor([1.0, 0.0], dtype=x.dtype).expand(x.shape)


def unit_vectors(batch, seq, heads):
    """Values of which the outputs are the weights."""
    return paddle.eye(seq, dtype="float64").unsqueeze([0, 2]).expand([batch, seq, heads, seq])


# feature maps and normalizers


def above_zero(x):
    return (x + x.abs()) / 2 + 0.1


FAVOR = OrthogonalRandomFeatures(4, 4)
MAPS = {  # the map, and its formula for queries and, with a mask, for keys
    "elu_plus_one": (elu_plus_one, reference.elu_plus_one, lambda mask: reference.elu_plus_one),
    "relu": (lambda x: relu(x) + 0.1, above_zero, lambda mask: above_zero),
    "exp": (exp, paddle.exp, lambda mask: paddle.exp),
    "softmax_exp": (SoftmaxExp(), paddle.nn.functional.softmax, softmax_over_keys),
    "favor": (FAVOR, random_features(FAVOR.projection), lambda mask: random_features(FAVOR.projection)),
}


@pytest.mark.equation("3.1", "3.3", "3.6", "3.15", "3.17", "3.23", "3.28", "3.30")
@pairwise(
    {
        "name": list(MAPS),
        "normalizer": ["unrotated", "rotated", "none"],
        "masked": [False, True],
        "turned": [False, True],
        "options": [{}, {"decay": [0.9, 0.5]}, {"causal": True}],
    }
)
def test_every_feature_map_and_normalizer_equals_the_double_sum(name, normalizer, masked, turned, options):
    if name == "softmax_exp" and "causal" in options:
        pytest.skip("the map looks at the whole sequence")
    qkv, mask = random_qkv(2, 7), ragged_mask(2, 7) if masked else None
    positions = np.arange(7) / 10 if turned else None  # no angle is beyond 90 degrees: denominators are positive too
    rope = rope_of(qkv[0], positions=paddle.to_tensor(positions)) if turned else None
    phi, phi_q, phi_k = MAPS[name]
    key_mask = None if mask is None else paddle.to_tensor(mask)
    attended = linear_attention(*qkv, rope, key_mask, phi, normalizer, chunk_size=3, **options)
    expected = reference.linear_attention(*qkv, positions, mask, phi_q, phi_k(mask), normalizer, **options)
    # a sum that cancels is far from its root mean square
    assert_same(attended, expected, qkv, atol=1e-7 if normalizer == "none" else 1e-9)


@pytest.mark.equation("3.5", "3.20", "3.21")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 5e-5), ("float64", 1e-9)])
def test_one_plus_cosine_equals_the_double_sum_and_stays_a_probability(causal, dtype, tolerance):
    exact, mask = random_qkv(2, 9), None if causal else ragged_mask(2, 9)
    inputs = cast(exact, dtype)
    key_mask = None if mask is None else paddle.to_tensor(mask)
    options = {"feature_map": OnePlusCosine(), "normalizer": "rotated", "causal": causal}
    attended = linear_attention(*inputs, rope_of(inputs[0]), key_mask, **options)
    assert_same(attended, reference.cosine_attention(*exact, range(9), mask, causal=causal), inputs, exact, tolerance)
    q, k, _ = exact
    segments = paddle.to_tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2], [3] * 9])
    for more in ({"key_mask": key_mask}, {"segment_ids": segments}, {"decay": [0.9, 0.5]}):
        weights = linear_attention(q, k, unit_vectors(2, 9, 2), rope_of(q), **options, **more).numpy()
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)
        assert (weights >= 0).all()


@pytest.mark.equation("3.4")
def test_relative_positions_alone_count_with_more_features_than_head_dim():
    qkv, phi, rotary = random_qkv(1, 6), OrthogonalRandomFeatures(4, 10), RotaryPositionEmbedding(10)
    here, there = (linear_attention(*qkv, rotary.cos_sin(6, at, "float64"), feature_map=phi) for at in (0, 100))
    assert_close(there, here)


# the denominator


@pytest.mark.equation("3.7")
def test_a_denominator_under_the_bound_is_cut_at_the_bound():
    q, k, v = random_qkv(1, 3, 1, 2, 2)
    rope = rope_of(q, positions=paddle.to_tensor([0.0, np.pi, np.pi]))
    attended = linear_attention(q, k, v, rope, None, one_feature, "rotated").numpy()[0, :, 0]
    numerator = v.numpy()[0, 0, 0] - v.numpy()[0, 1, 0] - v.numpy()[0, 2, 0]
    np.testing.assert_allclose(attended[:2], [numerator / MIN_DENOMINATOR["rotated"], -numerator], rtol=1e-10)


@pytest.mark.equation("3.7")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "feature_map, scale, shift",
    [
        (elu_plus_one, 0.01, -12),  # 6e-6
        (elu_plus_one, 0, -35.5),  # 4e-16
        (OrthogonalRandomFeatures(16), 5, 0),  # of long keys: less
        (lambda x: paddle.full_like(x, 3e-16), 0, 0),
    ],
    ids=["elu", "tiny elu", "favor", "constant"],
)
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
@pairwise({"name": LINEAR, "form": list(FORMS)})
def test_features_that_hardly_overlap_are_bounded_as_in_the_double_sum(name, form):
    q, k, v = random_qkv(2, 150)
    apart = paddle.to_tensor([30.0, -30.0, 30.0, -30.0], dtype="float64")  # most pairs have one small factor each
    exact = cast([20 * q + apart, 20 * k - apart, v], "float64")
    inputs = cast(exact, FORMS[form].dtype)
    with FORMS[form].context():
        attended = KERNELS[name](*inputs, rope_of(inputs[0]))
    assert_same(attended, KERNELS[name].reference(*exact, range(150)), inputs, exact, 10 * FORMS[form].tolerance)
    assert float(attended.abs().max()) > 10  # some are bounded: otherwise they are averages


@pytest.mark.equation("3.16")
def test_a_query_or_all_keys_without_positive_feature_give_zero():
    q, k, v = random_qkv(1, 4)
    for given in ((-q.abs(), k, v), (q, -k.abs(), v)):
        attended = linear_attention(*given, feature_map=relu)
        assert (attended.numpy() == 0).all()
        assert all(np.isfinite(x.numpy()).all() for x in paddle.grad(attended.sum(), [q, k, v]))


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
def test_sums_are_taken_outside_auto_cast(amp_as_on_gpu):
    levels = []

    def phi(x):
        levels.append(amp_as_on_gpu._amp_level)
        return elu_plus_one(x)

    linear_attention(*random_qkv(1, 3, dtype="float32"), feature_map=phi)
    assert levels == [paddle.base.core.AmpLevel.O0] * 2
    assert amp_as_on_gpu._amp_level == paddle.base.core.AmpLevel.O2


DECAYS = [[0.5], [0.5, 0.0], [0.5, 1.1], [0.5, float("nan")], 0.5]
IMPOSSIBLE = [
    *(({"decay": decay}, "decay must be 2 numbers") for decay in DECAYS),
    ({"decay": paddle.ones([1, 2, 4])}, "decay must be 2 numbers"),
    ({"decay": paddle.to_tensor([0.5, float("nan")])}, "decay must be 2 numbers"),
    ({"feature_map": OnePlusCosine()}, "normalizer='rotated'"),
    ({"normalizer": "Rotated"}, "normalizer must be one of"),
    ({"normalizer": None}, "normalizer must be one of"),
    ({"feature_map": SoftmaxExp()}, "whole sequence"),
]


@pytest.mark.parametrize("options, words", IMPOSSIBLE, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_impossible_options_are_refused(options, words, dtype):
    qkv = random_qkv(1, 3, dtype=dtype)
    for more in ({"causal": True}, {"segment_ids": paddle.zeros([1, 3], dtype="int64")}):
        with pytest.raises(ValueError, match=words):
            linear_attention(*qkv, **options, **more)
    with pytest.raises(ValueError, match=words):
        linear_attention_step(None, *qkv, **options)
    with pytest.raises(ValueError, match="chunk_size must be positive"):
        linear_attention(*qkv, chunk_size=0)


@pytest.mark.parametrize("name", [name for name in KERNELS if "linear" in name])
def test_on_a_gpu_bfloat16_is_multiplied_in_bfloat16_and_summed_in_float32(name, monkeypatch):
    dtypes, product = [], paddle.matmul

    def by_tensor_cores(x, y, **transposed):
        dtypes.extend((x.dtype, y.dtype))
        return product(x.astype("float32"), y.astype("float32"), **transposed).astype(x.dtype)

    inputs = random_qkv(2, 11, dtype="bfloat16")
    exact, options = cast(inputs, "float64"), {"placement": "qkvo"}
    monkeypatch.setattr(linear, "computes_on_cpu", lambda: False)
    monkeypatch.setattr(paddle, "matmul", by_tensor_cores)
    attended = KERNELS[name](*inputs, rope_of(inputs[0]), **options)
    assert len(dtypes) > 3 and set(dtypes) == {paddle.bfloat16} and attended.dtype == paddle.bfloat16
    dtypes.clear()
    monkeypatch.undo()
    tolerance = 0.06 if "norm" in name else 0.02  # a unit in the last place is 0.0078
    expected = KERNELS[name](*exact, rope_of(exact[0]), **options)
    assert_close(attended, expected, tolerance, 2 * tolerance)
    if KERNELS[name].packs:  # Paddle's CPU has no gradient of bfloat16 pieces
        assert_same(attended, expected, inputs, exact, tolerance, 2 * tolerance)
