"""Softmax attention: extreme scores and dropout in both forms, the window, and the kernels of a GPU."""

import inspect
from functools import partial

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest

from paddle_rope import backend, softmax_attention, window_attention
from paddle_rope.attention import softmax
from paddle_rope.attention.arguments import cumulative_lengths
from paddle_rope.native.dispatch import plain_forms
from tests.helpers.comparison import assert_close, assert_same, cast, random_tensor
from tests.paddle_rope import reference
from tests.paddle_rope.attention.kernels import FORMS, ragged_mask, random_qkv

BOTH = {"softmax": softmax_attention, "window": partial(window_attention, window=7)}
softmax_and_window = pytest.mark.parametrize("attend", BOTH.values(), ids=BOTH)


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


@pytest.mark.parametrize("score", [-9e3, -1e4, -1e8])
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
    paddle.seed(1)
    dropped = attend(q, k, unit, dropout=0.4).numpy()
    kept = dropped != 0
    assert 0.55 < kept.sum() / (weights != 0).sum() < 0.65
    np.testing.assert_allclose(dropped[kept], weights[kept] / 0.6, rtol=1e-4)
    if attend is softmax_attention:  # gradients pass the same mask
        v, exact = random_tensor(1, seq, 1, seq, dtype="float32"), cast([q, k], "float64")
        paddle.seed(1)
        found = softmax_attention(q, k, v, dropout=0.4)
        scores = paddle.matmul(exact[0][0, :, 0], exact[1][0, :, 0], transpose_y=True) * seq**-0.5
        masked = F.softmax(scores) * paddle.to_tensor(kept[0, :, 0].astype("float64")) / 0.6
        exact += cast([v], "float64")
        expected = paddle.matmul(masked, exact[2][0, :, 0]).reshape(v.shape)
        assert_same(found, expected, [q, k, v], exact, 2e-4)


# the kernels of a GPU: the calls fit the signatures of Paddle, and their definitions give the plain form
def dense_call(query, key, value, attn_mask, dropout_p, is_causal, training):
    # Paddle 3 ignores one of them, Paddle 2 raises; and the mask is of each text
    assert attn_mask is None or (not is_causal and attn_mask.shape[0] == query.shape[0])
    if is_causal:
        return reference.softmax_attention(query, key, value, causal=True)
    scores = paddle.einsum("bihd,bjhd->bhij", query, key) * query.shape[-1] ** -0.5
    weights = F.softmax(scores if attn_mask is None else scores + attn_mask)
    return paddle.einsum("bhij,bjhd->bihd", weights, value)


def call_of_runs(
    query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale, dropout, causal, training
):
    assert cu_seqlens_q is cu_seqlens_k and cu_seqlens_q.dtype == paddle.int32 and max_seqlen_q == max_seqlen_k
    lengths = np.diff(cu_seqlens_q.numpy())
    assert scale == query.shape[-1] ** -0.5 and max(lengths) <= max_seqlen_q and training == (dropout > 0)
    ids, qkv = np.repeat(np.arange(len(lengths)), lengths), [x.unsqueeze(0) for x in (query, key, value)]
    return reference.softmax_attention(*qkv, segment_ids=[ids], causal=causal)[0], None


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Whatever has the shapes goes to the kernels: a list of their arguments by name."""
    calls = []

    def recorded(real, compute):
        def call(*arguments, **named):
            calls.append(inspect.signature(real).bind(*arguments, **named).arguments)
            return compute(**calls[-1])

        return call

    monkeypatch.setattr(softmax, "fits_fused_attention", backend._fits_fused_shapes)
    monkeypatch.setattr(F, "scaled_dot_product_attention", recorded(F.scaled_dot_product_attention, dense_call))
    monkeypatch.setattr(backend, "flash_attn_unpadded", recorded(backend.flash_attn_unpadded, call_of_runs))
    with plain_forms():
        yield calls


IDS = np.array([[0] * 3 + [1] * 4, [2] * 7, [0] * 4 + [-1] * 3])
PACKED = {"segment_ids": paddle.to_tensor(IDS)}
RUNS = {**PACKED, "key_mask": PACKED["segment_ids"] >= 0, "cu_seqlens": paddle.to_tensor(cumulative_lengths(IDS))}
PADDED = {"key_mask": paddle.to_tensor(ragged_mask(3, 7))}
CAUSAL = {"causal": True}
OPTIONS = {  # and the shape of their mask
    "all": ({}, None),
    "padding": (PADDED, [3, 1, 1, 7]),
    "packed": (PACKED, [3, 1, 7, 7]),
    "packed, padding": (PACKED | {"key_mask": PACKED["segment_ids"] > 0}, [3, 1, 7, 7]),
    "packed by lengths": (RUNS, None),
    "causal": (CAUSAL, None),
    "causal, padding": (CAUSAL | PADDED, [3, 1, 7, 7]),
    "causal, packed by lengths": (CAUSAL | RUNS, None),
    "a text of padding": ({"key_mask": paddle.to_tensor([[True] * 7] * 2 + [[False] * 7])}, [3, 1, 1, 7]),
}


@pytest.mark.parametrize("name, head_dim, fits", [
    *((name, 8, True) for name in OPTIONS),
    *(("padding", *size) for size in ((256, True), (4, False), (12, False), (264, False))),
])  # fmt: skip
def test_the_fused_calls_compute_the_plain_form_and_take_heads_of_some_sizes(name, head_dim, fits, as_on_a_gpu):
    options, shape = OPTIONS[name]
    given = random_qkv(3, 7, head_dim=head_dim, value_dim=head_dim, dtype="float32")
    found, exact = softmax_attention(*given, **options), cast(given, "float64")
    assert len(as_on_a_gpu) == fits
    for call in as_on_a_gpu:
        assert ("cu_seqlens_q" in call) == ("cu_seqlens" in options)
        mask = call.get("attn_mask")
        assert shape == (None if mask is None else mask.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(softmax, "fits_fused_attention", lambda *_: False)
        expected = softmax_attention(*exact, **options)
    if "cu_seqlens" in options:  # padding sees padding
        found, expected = (x * options["key_mask"].astype(x.dtype).unsqueeze([2, 3]) for x in (found, expected))
    assert_same(found, expected, given, exact, 1e-5)


def test_the_last_token_alone_needs_no_mask_and_several_need_one(as_on_a_gpu):
    q, k, v = random_qkv(2, 7, head_dim=8, value_dim=8, dtype="float32")
    for count in (1, 3):
        last = softmax_attention(q[:, -count:], k, v, causal=True)
        assert (as_on_a_gpu[-1]["attn_mask"] is None) == (count == 1) and not as_on_a_gpu[-1]["is_causal"]
        assert_close(last, softmax_attention(q, k, v, causal=True)[:, -count:], 1e-6)


def test_dropout_goes_to_the_fused_calls_none_of_which_is_for_a_cpu(as_on_a_gpu, monkeypatch):
    q = random_qkv(3, 7, head_dim=8, dtype="float32")[0]
    for options in ({}, RUNS):
        softmax_attention(q, q, q, dropout=0.5, **options)
    dense, of_runs = as_on_a_gpu
    assert (dense["dropout_p"], dense["training"], of_runs["dropout"], of_runs["training"]) == (0.5, True, 0.5, True)
    monkeypatch.undo()
    assert backend._fits_fused_shapes(q, q, q) and not backend._fits_fused_shapes(q, q, q[..., :-2])
    assert not backend.fits_fused_attention(q, q, q)
