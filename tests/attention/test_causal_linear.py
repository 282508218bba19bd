"""Causal linear attention: by chunks and step by step, against the double sum and against each other."""

import numpy as np
import paddle
import pytest

from paddle_rope import (
    RotaryPositionEmbedding,
    causal_linear_attention,
    linear_attention,
    linear_attention_step,
    reference,
)
from paddle_rope.attention import OnePlusCosine, OrthogonalRandomFeatures, SoftmaxExp, elu_plus_one, exp
from tests.attention.qkv import SHAPES, ragged_mask, random_qkv
from tests.pairwise import pairwise

DECAY = [0.9, 1.0, 0.3]


def assert_same_with_gradients(attended, expected, inputs, exact, tolerance):
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((attended * towards.astype(attended.dtype)).sum(), inputs)
    expected_gradients = paddle.grad((expected * towards).sum(), exact)
    for name, gradient, expected_gradient in zip(["q", "k", "v", "decay"], gradients, expected_gradients):
        np.testing.assert_allclose(
            gradient.numpy(), expected_gradient.numpy(), rtol=tolerance, atol=tolerance, err_msg=name
        )


def stepwise(q, k, v, *args, **kwargs):
    """``linear_attention_step`` over all tokens: outputs ``[batch, heads, seq, value_dim]`` and the last state."""
    state, outputs = None, []
    for i in range(q.shape[2]):
        state, y = linear_attention_step(state, *(x[:, :, i : i + 1] for x in (q, k, v)), *args, **kwargs)
        outputs.append(y)
    return paddle.concat(outputs, axis=2), state


@pairwise(
    {
        "chunk_size": [1, 2, 3, 64],
        "rotated": [False, True],
        "masked": [False, True],
        "decayed": [False, True],
        "dtype, tolerance": [("float32", 5e-5), ("float64", 1e-10)],
    }
)
def test_outputs_and_gradients_equal_the_double_sum(rotated, masked, decayed, dtype, tolerance, chunk_size):
    batch, heads, seq, head_dim, _ = shape = SHAPES[1]
    exact = random_qkv(*shape)
    if decayed:
        exact.append(paddle.to_tensor(DECAY, dtype="float64", stop_gradient=False))
    inputs = [x.detach().astype(dtype) for x in exact]
    for x in inputs:
        x.stop_gradient = False
    mask = ragged_mask(batch, seq) if masked else None
    key_mask = None if mask is None else paddle.to_tensor(mask)
    rotate = RotaryPositionEmbedding(head_dim) if rotated else None
    decay, exact_decay = (inputs[3], exact[3]) if decayed else (None, None)
    attended = causal_linear_attention(*inputs[:3], rotate, key_mask, decay=decay, chunk_size=chunk_size)
    positions = range(seq) if rotated else None
    expected = reference.linear_attention(*exact[:3], positions, mask, causal=True, decay=exact_decay)
    assert attended.dtype == inputs[0].dtype
    assert_same_with_gradients(attended, expected, inputs, exact, tolerance)


@pytest.mark.parametrize("normalizer", ["unrotated", "rotated", "none"])
@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[2]], ids=str)
def test_every_normalizer_equals_the_double_sum(shape, normalizer):
    qkv = random_qkv(*shape)
    positions = np.arange(shape[2]) / 10  # angles under 90 degrees: rotated denominators are positive too
    rotary = RotaryPositionEmbedding(shape[3])
    attended = causal_linear_attention(
        *qkv,
        lambda x: rotary(x, positions=paddle.to_tensor(positions)),
        normalizer=normalizer,
        decay=[0.7],
        chunk_size=3,
        feature_map=exp,
    )
    expected = reference.linear_attention(
        *qkv, positions, None, paddle.exp, paddle.exp, normalizer, causal=True, decay=[0.7]
    )
    assert_same_with_gradients(attended, expected, qkv, qkv, 1e-8 if normalizer == "none" else 1e-10)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_plus_cosine_equals_the_double_sum_and_is_a_probability(shape):
    batch, heads, seq, head_dim, _ = shape
    q, k, v = qkv = random_qkv(*shape)
    rotary = RotaryPositionEmbedding(head_dim)
    options = {"feature_map": OnePlusCosine(), "normalizer": "rotated", "chunk_size": 2}
    attended = causal_linear_attention(*qkv, rotary, **options)
    assert_same_with_gradients(attended, reference.cosine_attention(*qkv, range(seq), causal=True), qkv, qkv, 1e-9)
    weights = causal_linear_attention(
        q, k, paddle.eye(seq, dtype="float64").expand([batch, heads, seq, seq]), rotary, **options
    ).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)
    assert (weights >= 0).all()
    assert (np.triu(weights, 1) == 0).all()


@pytest.mark.parametrize("seq", [1, 13, 128, 131])
@pytest.mark.parametrize("decay", [None, [0.95, 1.0]], ids=["no decay", "decay"])
def test_outputs_do_not_depend_on_the_size_of_the_chunks(decay, seq):
    qkv = random_qkv(2, 2, seq, 4, 3)
    rotary, mask = RotaryPositionEmbedding(4), paddle.to_tensor(ragged_mask(2, seq))
    whole = causal_linear_attention(*qkv, rotary, mask, decay=decay, chunk_size=seq).numpy()
    for chunk_size in (1, 5, 64, seq + 1, 10_000):
        attended = causal_linear_attention(*qkv, rotary, mask, decay=decay, chunk_size=chunk_size).numpy()
        np.testing.assert_allclose(attended, whole, rtol=0, atol=1e-11)


def test_later_tokens_and_padding_have_no_influence():
    q, k, v = random_qkv(1, 2, 20, 4, 3)
    rotary, mask = RotaryPositionEmbedding(4), paddle.to_tensor([[True] * 5 + [False] * 2 + [True] * 13])
    attended = causal_linear_attention(q, k, v, rotary, mask, chunk_size=8)
    gradients = paddle.grad(attended[:, :, :11].sum(), [q, k, v], retain_graph=True)
    for gradient in gradients:
        assert (gradient[:, :, 11:].numpy() == 0).all()
    _, k_gradient, v_gradient = gradients
    for gradient in (k_gradient, v_gradient):
        assert (gradient[:, :, 5:7].numpy() == 0).all()
        assert (gradient[:, :, :5].numpy() != 0).all()
    cut = causal_linear_attention(*(x[:, :, :11] for x in (q, k, v)), rotary, mask[:, :11], chunk_size=8)
    np.testing.assert_allclose(cut.numpy(), attended[:, :, :11].numpy(), rtol=0, atol=1e-12)


def test_the_last_token_sees_what_it_sees_in_bidirectional_attention():
    q, k, v = random_qkv(2, 2, 70, 4, 3)
    rotary = RotaryPositionEmbedding(4)
    causal, both = causal_linear_attention(q, k, v, rotary), linear_attention(q, k, v, rotary)
    np.testing.assert_allclose(causal[:, :, -1].numpy(), both[:, :, -1].numpy(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(causal[:, :, 0].numpy(), v[:, :, 0].numpy(), rtol=0, atol=1e-12)


def test_a_query_without_a_real_key_so_far_gets_zero():
    q, k, v = random_qkv(1, 1, 6, 4, 2, dtype="float32")
    mask = paddle.to_tensor([[False, False, False, True, True, True]])
    for normalizer in ("unrotated", "none"):
        attended = causal_linear_attention(q, k, v, None, mask, normalizer=normalizer, chunk_size=2)
        assert (attended[:, :, :3].numpy() == 0).all()
        assert (attended[:, :, 3:].numpy() != 0).all()
        assert all(np.isfinite(x.numpy()).all() for x in paddle.grad(attended.sum(), [q, k, v]))


@pytest.mark.parametrize("dtype, unit", [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_half_precision_loses_no_more_than_its_rounding(dtype, unit):
    halves = [x.detach().astype(dtype) for x in random_qkv(2, 2, 200, 4, 3)]
    exact = [x.astype("float64") for x in halves]
    rotary = RotaryPositionEmbedding(4)
    attended = causal_linear_attention(*halves, rotary, decay=[0.99, 1.0])
    assert attended.dtype == halves[0].dtype
    expected = causal_linear_attention(*exact, rotary, decay=[0.99, 1.0]).numpy()
    np.testing.assert_allclose(attended.astype("float64").numpy(), expected, rtol=unit, atol=1e-5)
    steps, state = stepwise(*(x[:, :, :20] for x in halves), rotary, decay=[0.99, 1.0])
    assert steps.dtype == halves[0].dtype
    assert state.key_values.dtype == state.keys.dtype == paddle.float32
    np.testing.assert_allclose(steps.astype("float64").numpy(), expected[:, :, :20], rtol=unit, atol=1e-5)


def test_no_square_of_the_length_is_ever_held():
    seq = 100_001  # weights [seq, seq] of this length would be 40 GB
    q, k, v = random_qkv(1, 1, seq, 2, 1, dtype="float32")
    attended = causal_linear_attention(q, k, v, RotaryPositionEmbedding(2), decay=[0.999], chunk_size=256)
    gradients = paddle.grad(attended.sum(), [q, k, v])
    assert attended.shape == [1, 1, seq, 1]
    assert all(bool(paddle.isfinite(x).all()) for x in (attended, *gradients))


@pytest.mark.parametrize(
    "normalizer, decay",
    [("unrotated", None), ("unrotated", [0.99, 0.5]), ("rotated", [1.0, 0.9]), ("none", [0.9, 1.0])],
)
def test_a_thousand_steps_equal_the_causal_form(normalizer, decay):
    q, k, v = (x.detach() for x in random_qkv(1, 2, 1000, 8, 3, dtype="float32"))
    rotary = RotaryPositionEmbedding(8)
    phi = OnePlusCosine() if normalizer == "rotated" else elu_plus_one
    options = {"feature_map": phi, "normalizer": normalizer, "decay": decay}
    steps, state = stepwise(q, k, v, rotary, **options)
    parallel = causal_linear_attention(q, k, v, rotary, **options)
    np.testing.assert_allclose(steps.numpy(), parallel.numpy(), rtol=1e-4, atol=1e-4)
    features = 9 if normalizer == "rotated" else 8
    assert state.length == 1000
    assert state.key_values.shape == [1, 2, features, 3]
    assert (state.keys is None) if normalizer == "none" else (state.keys.shape == [1, 2, features, 1])


def test_steps_equal_the_causal_form_in_gradients_and_leave_old_states_alone():
    q, k, v = qkv = random_qkv(2, 2, 6, 4, 3)
    phi, rotary = OrthogonalRandomFeatures(4, 10), RotaryPositionEmbedding(10)
    decay = paddle.to_tensor([0.8, 0.3], dtype="float64", stop_gradient=False)
    steps, _ = stepwise(*qkv, rotary, phi, decay=decay)
    parallel = causal_linear_attention(*qkv, rotary, None, phi, decay=decay, chunk_size=4)
    assert_same_with_gradients(steps, parallel, [*qkv, decay], [*qkv, decay], 1e-10)
    first, _ = linear_attention_step(None, *(x[:, :, :1] for x in qkv), rotary, phi)
    before = [first.key_values.numpy().copy(), first.keys.numpy().copy()]
    branches = [linear_attention_step(first, *(x[:, :, i : i + 1] for x in qkv), rotary, phi)[1] for i in (1, 2, 1)]
    np.testing.assert_array_equal(branches[0].numpy(), branches[2].numpy())
    np.testing.assert_array_equal(first.key_values.numpy(), before[0])
    np.testing.assert_array_equal(first.keys.numpy(), before[1])


def test_rope_on_values_and_outputs_is_a_complex_linear_recurrence():
    # kexue.fm 10862: with a_ij = gamma^(i-j), o_i = R_i^T sum_{j<=i} a_ij R_j v_j is, pair by pair as complex numbers,
    # o_i = lambda o_{i-1} + v_i with lambda = gamma exp(-i theta)
    gamma, seq, value_dim = 0.95, 150, 6

    def ones(x):
        return paddle.ones_like(x[..., :1])

    q, k, v = random_qkv(1, 1, seq, 4, value_dim)
    rotary = RotaryPositionEmbedding(value_dim)
    options = {"feature_map": ones, "decay": [gamma], "placement": "vo"}
    weights = np.cumsum(gamma ** np.arange(seq))  # the denominator, sum_{j<=i} a_ij
    attended = causal_linear_attention(q, k, v, rotary, **options).numpy()[0, 0] * weights[:, np.newaxis]
    normed = causal_linear_attention(q, k, v, rotary, normalizer="none", **options).numpy()[0, 0]

    complex_v = v.numpy()[0, 0, :, 0::2] + 1j * v.numpy()[0, 0, :, 1::2]
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
        ({"feature_map": SoftmaxExp()}, "whole sequence"),
        ({"feature_map": OnePlusCosine()}, "normalizer='rotated'"),
        ({"normalizer": "sum"}, "normalizer must be one of"),
    ],
    ids=["chunk", "heads", "zero", "above one", "nan", "scalar", "softmax_exp", "cosine", "normalizer"],
)
def test_impossible_options_are_an_error(options, words):
    q, k, v = random_qkv(1, 2, 3, 4, 2)
    with pytest.raises(ValueError, match=words):
        causal_linear_attention(q, k, v, **options)
    if "chunk_size" not in options:
        with pytest.raises(ValueError, match=words):
            linear_attention_step(None, *(x[:, :, :1] for x in (q, k, v)), **options)


def test_a_step_takes_one_token():
    with pytest.raises(ValueError, match="one token"):
        linear_attention_step(None, *random_qkv(1, 1, 2, 4, 3))
