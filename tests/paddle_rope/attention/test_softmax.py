"""Softmax attention: extreme scores and dropout in both forms, the window, and the kernels of a GPU."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import softmax_attention, window_attention
from paddle_rope.attention import softmax
from paddle_rope.native.dispatch import plain_forms
from tests.helpers.comparison import assert_close, assert_same, cast, random_tensor
from tests.paddle_rope.attention.kernels import FORMS, ragged_mask, random_qkv, rope_of

IS_PADDLE_2 = paddle.__version__.startswith("2.")  # which on CPU has no form of the fused call with a mask
softmax_and_window = pytest.mark.parametrize(
    "attend", [softmax_attention, partial(window_attention, window=7)], ids=["softmax", "window"]
)


@pytest.fixture(params=["float32", "native"])
def form(request, native_operators):
    """Both forms of float32 attention, one after the other."""
    with FORMS[request.param].context():
        yield request.param


def scored(scores):
    """q and k whose scores are ``scores``, one for each key, and values of which the outputs are the weights."""
    size = len(scores)
    q, k = np.zeros([2, 1, size, 1, size], dtype="float32")
    q[..., 0], k[0, :, 0, 0] = np.sqrt(size), scores
    v = paddle.eye(size).reshape([1, size, 1, size])
    v.stop_gradient = False
    return paddle.to_tensor(q), paddle.to_tensor(k), v


@pytest.mark.parametrize("score", [-9e3, -1e4, -2e4, -1e8])
@softmax_and_window
def test_what_is_hidden_has_no_weight_however_low_the_other_scores_are(attend, score, form):
    index = np.arange(90)  # of several blocks
    q, k, v = scored(np.where(index % 3 == 2, 0.0, score))
    mask = paddle.to_tensor(index % 3 != 2).unsqueeze(0)
    for options, hidden in (
        ({"key_mask": mask}, index % 3 == 2),
        ({"causal": True}, index > 1),
        ({"segment_ids": paddle.arange(90).unsqueeze(0) // 2}, index > 1),
    ):
        attended = attend(q, k, v, **options)[0, 1, 0]
        (gradient,) = paddle.grad(attended.sum(), [v])
        assert (attended.numpy()[hidden] == 0).all() and (gradient.numpy()[0, hidden] == 0).all()
        np.testing.assert_allclose(attended.numpy().sum(), 1, rtol=1e-6)


@pytest.mark.equation("2.1")
def test_weights_down_to_1e_20_of_the_largest_count_and_smaller_ones_are_0(form):
    scores = np.array([0, -20, -40, -45.5, -46.5, -60])
    weights = np.where(scores > -46, np.exp(scores), 0)
    attended = softmax_attention(*(inputs := scored(scores)))
    np.testing.assert_allclose(attended.numpy()[0, :, 0], np.tile(weights, (6, 1)), rtol=1e-4, atol=0)
    (gradient,) = paddle.grad(attended.sum(), [inputs[2]])
    np.testing.assert_allclose(gradient.numpy()[0, :, 0, 0], 6 * weights, rtol=1e-4, atol=0)


@pytest.mark.equation("2.5")
@softmax_and_window
def test_dropout_acts_on_the_weights(attend, form):
    seq = 40
    q, k = (random_tensor(1, seq, 1, seq, dtype="float32") for _ in range(2))
    unit = paddle.eye(seq).reshape([1, seq, 1, seq])  # the outputs are the weights
    weights = attend(q, k, unit).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    np.random.seed(3)
    dropped = attend(q, k, unit, dropout=0.4).numpy()
    kept = dropped != 0
    assert 0.55 < kept.sum() / (weights != 0).sum() < 0.65
    np.testing.assert_allclose(dropped[kept], weights[kept] / 0.6, rtol=1e-4)
    if attend is softmax_attention:  # gradients pass the same mask
        v, exact = random_tensor(1, seq, 1, seq, dtype="float32"), cast([q, k], "float64")
        np.random.seed(3)
        found = softmax_attention(q, k, v, dropout=0.4)
        scores = paddle.matmul(exact[0][0, :, 0], exact[1][0, :, 0], transpose_y=True) * seq**-0.5
        masked = paddle.nn.functional.softmax(scores) * paddle.to_tensor(kept[0, :, 0].astype("float64")) / 0.6
        exact += cast([v], "float64")
        expected = paddle.matmul(masked, exact[2][0, :, 0]).reshape(v.shape)
        assert_same(found, expected, [q, k, v], exact, 2e-4)


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
    assert_close(attended[sees_some], expected[sees_some])


@pytest.mark.equation("2.8")
@pytest.mark.parametrize("options", [{}, {"causal": True}], ids=str)
def test_a_window_over_the_whole_text_is_softmax_attention(options):
    q, k, v = random_qkv()
    mask = paddle.to_tensor(ragged_mask(2, 11))
    expected = softmax_attention(q, k, v, rope_of(q), mask, **options)
    for window in (10, 11, 500):
        assert_close(window_attention(q, k, v, window, rope_of(q), mask, **options), expected, 1e-14)
    assert float((window_attention(q, k, v, 2, rope_of(q), mask, **options) - expected).abs().max()) > 1e-2
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        window_attention(q, k, v, 0)


@pytest.mark.equation("2.9")
def test_what_is_out_of_sight_has_no_influence():
    qkv = random_qkv(1, 30, dtype="float32")
    for gradient, reach in zip(paddle.grad(window_attention(*qkv, 5)[:, 12].sum(), qkv), (0, 5, 5)):
        reached = np.flatnonzero(np.abs(gradient.numpy()).max(axis=(0, 2, 3)))
        assert (reached.min(), reached.max()) == (12 - reach, 12 + reach)


# the kernels of a GPU: on CPU the same call computes its mathematical form


@pytest.fixture
def always_fused(monkeypatch):
    """Whatever has the shapes goes to the kernels: a list of whether the calls had."""
    calls = []

    def fits(q, k, v):
        calls.append(softmax._fits_fused_shapes(q, k, v))
        return calls[-1]

    monkeypatch.setattr(softmax, "_fits_fused_kernels", fits)
    with plain_forms():
        yield calls


MASKED = {
    "padding": {"key_mask": paddle.to_tensor(ragged_mask(3, 7))},
    "packed": {"segment_ids": paddle.to_tensor([[0] * 3 + [1] * 4, [2] * 7, [0] * 6 + [5]])},
    "causal": {"causal": True},
    "causal, padding": {"causal": True, "key_mask": paddle.to_tensor(ragged_mask(3, 7))},
    "a text of padding": {"key_mask": paddle.to_tensor([[True] * 7] * 2 + [[False] * 7]), "causal": True},
}
OPTIONS = {"all": {}, **({} if IS_PADDLE_2 else MASKED)}


@pytest.mark.parametrize("head_dim, fits", [(8, True), (256, True), (4, False), (12, False), (264, False)])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_fused_call_computes_the_plain_form_and_takes_heads_of_some_sizes(name, head_dim, fits, always_fused):
    given = random_qkv(3, 7, head_dim=head_dim, value_dim=head_dim, dtype="float32")
    found, exact = softmax_attention(*given, **OPTIONS[name]), cast(given, "float64")
    assert always_fused == [fits]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(softmax, "_fits_fused_kernels", lambda *_: False)
        expected = softmax_attention(*exact, **OPTIONS[name])
    assert_same(found, expected, given, exact, 1e-5)


def test_dropout_of_the_fused_call_keeps_the_mean_and_no_call_is_fused_on_a_cpu(always_fused, monkeypatch):
    given = random_qkv(1, 40, head_dim=8, value_dim=8, dtype="float32")
    plain = softmax_attention(*given).numpy()
    drawn = [softmax_attention(*given, dropout=0.5).numpy() for _ in range(400)]
    assert np.abs(drawn[0] - plain).max() > 1e-2
    np.testing.assert_allclose(np.mean(drawn, axis=0), plain, rtol=0, atol=0.15)
    monkeypatch.undo()
    q = paddle.zeros([1, 2, 1, 8], dtype="bfloat16")
    assert softmax._fits_fused_shapes(q, q, q) and not softmax._fits_fused_shapes(q, q, q[..., :-2])
    assert not softmax._fits_fused_kernels(q, q, q)
