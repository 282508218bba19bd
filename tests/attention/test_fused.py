"""Softmax attention by Paddle's call for the kernels of a GPU: on CPU the same call computes its mathematical form."""

import numpy as np
import paddle
import pytest

from paddle_rope import reference
from paddle_rope.attention import fused, softmax
from paddle_rope.layers import Dropout
from tests.attention.qkv import ragged_mask, random_qkv

IS_PADDLE_2 = paddle.__version__.startswith("2.")  # which on CPU has no form of the call with a mask


@pytest.fixture
def always_fused(monkeypatch):
    """Whatever has the shapes goes to the kernels."""
    calls = []

    def fits(q, k, v, dropout):
        calls.append(fused.fits_fused_shapes(q, k, v, dropout))
        return calls[-1]

    monkeypatch.setattr(softmax, "fits_fused_kernels", fits)
    return calls


def qkv(batch, seq, head_dim=8):
    given = random_qkv(batch, 2, seq, head_dim, head_dim, dtype="float32")
    for x in given:
        x.stop_gradient = False
    return given


def outputs(given, towards, **options):
    attended = softmax.softmax_attention(*given, **options)
    return [attended, *paddle.grad((attended * towards).sum(), given)]


OPTIONS = {
    "all": {},
    "padding": {"key_mask": paddle.to_tensor(ragged_mask(3, 7))},
    "packed": {"segment_ids": paddle.to_tensor([[0] * 3 + [1] * 4, [2] * 7, [0] * 6 + [5]])},
    "causal": {"causal": True},
    "causal, padding": {"causal": True, "key_mask": paddle.to_tensor(ragged_mask(3, 7))},
}


@pytest.mark.parametrize("name", ["all"] if IS_PADDLE_2 else OPTIONS)
def test_outputs_and_gradients_are_those_of_the_plain_form(name, always_fused):
    given, towards = qkv(3, 7), paddle.randn([3, 2, 7, 8])
    found = outputs(given, towards, **OPTIONS[name])
    assert always_fused == [True]
    always_fused.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(softmax, "fits_fused_kernels", lambda *_: False)
        expected = outputs(given, towards, **OPTIONS[name])
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=0, atol=1e-5)


def test_the_call_computes_the_reference(always_fused):
    q, k, v = qkv(1, 5)
    expected = reference.softmax_attention(*(x.astype("float64") for x in (q, k, v)), None, None)
    np.testing.assert_allclose(softmax.softmax_attention(q, k, v).numpy(), expected.numpy(), rtol=0, atol=1e-5)


@pytest.mark.skipif(IS_PADDLE_2, reason="Paddle 2 has no form of the call with a mask on CPU")
def test_a_row_without_keys_is_no_nan(always_fused):
    given = qkv(2, 3)
    mask = paddle.to_tensor([[True, True, True], [False, False, False]])
    for x in outputs(given, paddle.ones([2, 2, 3, 8]), key_mask=mask):
        assert bool(paddle.isfinite(x).all())
    packed = softmax.softmax_attention(*given, key_mask=mask, segment_ids=paddle.to_tensor([[0, 0, 1]] * 2))
    assert float(packed[1].abs().max()) == 0


def test_dropout_keeps_the_mean_and_rests_in_evaluation(always_fused):
    q, k, v = qkv(1, 40)
    plain, layer = softmax.softmax_attention(q, k, v), Dropout(0.5)
    layer.eval()
    np.testing.assert_array_equal(softmax.softmax_attention(q, k, v, dropout=layer).numpy(), plain.numpy())
    layer.train()
    drawn = [softmax.softmax_attention(q, k, v, dropout=layer).numpy() for _ in range(400)]
    assert np.abs(drawn[0] - plain.numpy()).max() > 1e-2
    np.testing.assert_allclose(np.mean(drawn, axis=0), plain.numpy(), rtol=0, atol=0.15)


@pytest.mark.parametrize("head_dim, fits", [(8, True), (256, True), (4, False), (12, False), (264, False)])
def test_sizes_of_heads_that_the_kernels_take(head_dim, fits):
    q = k = v = paddle.zeros([1, 1, 2, head_dim])
    assert fused.fits_fused_shapes(q, k, v, None) == fits
    assert not fused.fits_fused_shapes(q, k, v[..., :-2], None)
    assert not fused.fits_fused_shapes(q, k, v, lambda weights: weights)  # dropout that the kernel cannot draw
    assert not fused.fits_fused_kernels(q, k, v, None)  # on CPU
