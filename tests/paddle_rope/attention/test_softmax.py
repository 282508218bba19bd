"""Softmax attention: what is masked, dropout, the window, and the kernels of a GPU."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import MultiHeadAttention, RotaryPositionEmbedding, reference, softmax_attention, window_attention
from paddle_rope.attention import softmax
from paddle_rope.attention import window as window_module
from tests.paddle_rope.attention.kernels import assert_same_with_gradients, ragged_mask, random_qkv, rope_of

IS_PADDLE_2 = paddle.__version__.startswith("2.")  # which on CPU has no form of the fused call with a mask


@pytest.mark.parametrize("score", [-9e3, -1e4, -2e4, -1e8])
@pytest.mark.parametrize("attend", [softmax_attention, partial(window_attention, window=2)], ids=["softmax", "window"])
def test_what_is_masked_has_no_weight_however_low_the_real_scores_are(attend, score):
    seq = 90  # of several blocks
    q, v = paddle.ones([1, seq, 1, 1]), paddle.arange(seq, dtype="float32").reshape([1, seq, 1, 1])
    k = paddle.where(v % 3 == 2, paddle.zeros_like(v), paddle.full_like(v, score))
    mask = (v % 3 != 2).reshape([1, seq])
    for options in ({"key_mask": mask}, {"causal": True}, {"segment_ids": paddle.arange(seq).unsqueeze(0) // 2}):
        v.stop_gradient = False
        attended = attend(q, k, v, **options)
        gradient = paddle.grad(attended[0, 1].sum(), [v])[0].flatten().numpy()  # the weights of token 1
        hidden = np.arange(seq) > 1 if "key_mask" not in options else ~mask.numpy()[0]
        assert (gradient[hidden] == 0).all()
        np.testing.assert_allclose(gradient.sum(), 1, rtol=1e-6)


@pytest.mark.equation("2.1")
def test_large_scores_pick_one_value():
    q, k, v = random_qkv(1, 5, 1, dtype="float32")
    attended = softmax_attention(1e3 * q, k, v)
    best = paddle.matmul(q[0, :, 0], k[0, :, 0], transpose_y=True).argmax(axis=-1)
    np.testing.assert_allclose(attended[0, :, 0].numpy(), v[0, :, 0].numpy()[best.numpy()], rtol=0, atol=1e-5)


@pytest.mark.equation("2.5")
@pytest.mark.parametrize("attend", [softmax_attention, partial(window_attention, window=7)], ids=["softmax", "window"])
def test_dropout_acts_on_the_weights(attend):
    q, k, _ = random_qkv(1, 40, 1, dtype="float32")
    v = paddle.eye(40).reshape([1, 40, 1, 40])  # the outputs are the weights
    weights = attend(q, k, v).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    dropped = attend(q, k, v, dropout=0.5).numpy()
    kept = dropped != 0
    assert 0.4 < kept.sum() / (weights != 0).sum() < 0.6
    np.testing.assert_allclose(dropped[kept], 2 * weights[kept], rtol=1e-5)


# the window


@pytest.mark.equation("2.7")
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("seq, window", [(200, 20), (193, 70)])
def test_blocks_equal_softmax_attention_with_all_other_scores_far_down(seq, window, causal):
    q, k, v = random_qkv(2, seq, head_dim=6)
    mask = paddle.to_tensor(ragged_mask(2, seq))
    lag = np.subtract.outer(np.arange(seq), np.arange(seq))
    inside = (np.abs(lag) <= window) & ((lag >= 0) | (not causal))
    outside = paddle.to_tensor(-1e3 * ~inside)
    expected = softmax_attention(q, k, v, rope_of(q), mask, causal=causal, score_bias=outside).numpy()
    attended = window_attention(q, k, v, window, rope_of(q), mask, causal=causal).numpy()
    sees_some = (inside & mask.numpy()[:, np.newaxis]).any(axis=-1)
    np.testing.assert_allclose(attended[sees_some], expected[sees_some], rtol=0, atol=1e-10)


@pytest.mark.equation("2.8")
@pytest.mark.parametrize("options", [{}, {"causal": True}], ids=str)
def test_a_window_over_the_whole_text_is_softmax_attention(options):
    q, k, v = random_qkv()
    mask = paddle.to_tensor(ragged_mask(2, 11))
    expected = softmax_attention(q, k, v, rope_of(q), mask, **options)
    for window in (10, 11, 500):
        attended = window_attention(q, k, v, window, rope_of(q), mask, **options)
        np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=1e-14)
    assert float((window_attention(q, k, v, 2, rope_of(q), mask, **options) - expected).abs().max()) > 1e-2


@pytest.mark.equation("2.10")
@pytest.mark.parametrize("seq", [6, 23])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_a_query_without_a_key_in_sight_gets_zero_and_no_gradient_is_nan(seq, causal, monkeypatch):
    monkeypatch.setattr(window_module, "_SMALLEST_BLOCK", 4)
    q, k, v = random_qkv(2, seq, 1, value_dim=2, dtype="float32")
    mask = np.zeros((2, seq), dtype=bool)
    mask[0, 3] = True
    attended = window_attention(q, k, v, 2, None, paddle.to_tensor(mask), causal=causal)
    sees_some = [3, 4, 5] if causal else [1, 2, 3, 4, 5]
    np.testing.assert_allclose(attended.numpy()[0, sees_some, 0], [v.numpy()[0, 3, 0]] * len(sees_some), rtol=1e-6)
    others = [i for i in range(seq) if i not in sees_some]
    assert (attended.numpy()[0, others] == 0).all() and (attended.numpy()[1] == 0).all()
    gradients = paddle.grad(attended.sum(), [q, k, v])
    assert all(bool(paddle.isfinite(x).all()) for x in gradients)
    assert float(gradients[2][0, 3, 0, 0]) == pytest.approx(len(sees_some))


@pytest.mark.equation("2.9")
def test_what_is_out_of_sight_has_no_influence():
    q, k, v = random_qkv(1, 30, dtype="float32")
    attended = window_attention(q, k, v, 5)
    gradients = paddle.grad(attended[:, 12].sum(), [q, k, v], retain_graph=True)
    for gradient, (first, last) in zip(gradients, ((12, 12), (7, 17), (7, 17))):
        reached = np.flatnonzero(np.abs(gradient.numpy()).max(axis=(0, 2, 3)))
        assert (reached.min(), reached.max()) == (first, last)


def test_a_window_of_no_token_is_an_error():
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        window_attention(*random_qkv(), 0)
    with pytest.raises(ValueError, match="window must be at least 1, got -1"):
        MultiHeadAttention(12, 2, "window", window=-1)


# the kernels of a GPU: on CPU the same call computes its mathematical form


@pytest.fixture
def always_fused(monkeypatch):
    """Whatever has the shapes goes to the kernels."""
    calls = []

    def fits(q, k, v):
        calls.append(softmax._fits_fused_shapes(q, k, v))
        return calls[-1]

    monkeypatch.setattr(softmax, "_fits_fused_kernels", fits)
    return calls


OPTIONS = {
    "all": {},
    "padding": {"key_mask": paddle.to_tensor(ragged_mask(3, 7))},
    "packed": {"segment_ids": paddle.to_tensor([[0] * 3 + [1] * 4, [2] * 7, [0] * 6 + [5]])},
    "causal": {"causal": True},
    "causal, padding": {"causal": True, "key_mask": paddle.to_tensor(ragged_mask(3, 7))},
}


@pytest.mark.parametrize("name", ["all"] if IS_PADDLE_2 else OPTIONS)
def test_the_fused_call_computes_the_plain_form(name, always_fused):
    given = random_qkv(3, 7, head_dim=8, value_dim=8, dtype="float32")
    found = softmax_attention(*given, **OPTIONS[name])
    assert always_fused == [True]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(softmax, "_fits_fused_kernels", lambda *_: False)
        expected = softmax_attention(*given, **OPTIONS[name]).astype("float64")
    assert_same_with_gradients(found, expected, given, given, 1e-5)


@pytest.mark.skipif(IS_PADDLE_2, reason="Paddle 2 has no form of the call with a mask on CPU")
def test_a_row_without_keys_is_no_nan_in_the_fused_call(always_fused):
    given = random_qkv(2, 3, head_dim=8, value_dim=8, dtype="float32")
    mask = paddle.to_tensor([[True] * 3, [False] * 3])
    attended = softmax_attention(*given, key_mask=mask)
    assert all(bool(paddle.isfinite(x).all()) for x in (attended, *paddle.grad(attended.sum(), given)))
    packed = softmax_attention(*given, key_mask=mask, segment_ids=paddle.to_tensor([[0, 0, 1]] * 2))
    assert float(packed[1].abs().max()) == 0


def test_dropout_of_the_fused_call_keeps_the_mean(always_fused):
    given = random_qkv(1, 40, head_dim=8, value_dim=8, dtype="float32")
    plain = softmax_attention(*given).numpy()
    drawn = [softmax_attention(*given, dropout=0.5).numpy() for _ in range(400)]
    assert np.abs(drawn[0] - plain).max() > 1e-2
    np.testing.assert_allclose(np.mean(drawn, axis=0), plain, rtol=0, atol=0.15)


@pytest.mark.parametrize("head_dim, fits", [(8, True), (256, True), (4, False), (12, False), (264, False)])
def test_sizes_of_heads_that_the_fused_kernels_take(head_dim, fits):
    q = paddle.zeros([1, 2, 1, head_dim])
    assert softmax._fits_fused_shapes(q, q, q) == fits
    assert not softmax._fits_fused_shapes(q, q, q[..., :-2])
    assert not softmax._fits_fused_kernels(q, q, q)  # on CPU


def test_alibi_in_the_scores_equals_the_reference():
    q, k, v = random_qkv(1, 6)
    lag = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    bias = paddle.to_tensor(-np.array([0.5, 0.25]).reshape(1, 2, 1, 1) * lag)
    attended = softmax_attention(q, k, v, RotaryPositionEmbedding(4).cos_sin(6, dtype="float64"), score_bias=bias)
    expected = reference.softmax_attention(q, k, v, range(6), slopes=[0.5, 0.25])
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=1e-10)
