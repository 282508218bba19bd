"""Window attention against its reference, in blocks and for short texts, and scores scaled by log of the length."""

import numpy as np
import paddle
import pytest

from paddle_rope import MultiHeadAttention, RotaryPositionEmbedding, reference, softmax_attention, window_attention
from paddle_rope.attention import window as window_module
from paddle_rope.layers import Dropout
from tests.attention.qkv import ragged_mask, random_qkv
from tests.pairwise import pairwise

# batch, heads, seq, head_dim, value_dim; window. With blocks of 4 the second and third take blocks, with and without
# a rest.
CASES = [((1, 1, 1, 2, 1), 1), ((2, 2, 16, 2, 3), 2), ((3, 1, 19, 4, 2), 3), ((2, 1, 7, 4, 3), 5), ((2, 1, 6, 2, 2), 9)]
OPTIONS = [
    {},
    {"causal": True},
    {"placement": "qkvo"},
    {"packed": True},
    {"packed": True, "causal": True},
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(window_module, "_SMALLEST_BLOCK", 4)


def segments(batch, seq):
    return np.sort(np.random.randint(0, 3, (batch, seq)), axis=1)


@pairwise(
    {
        "shape, window": CASES,
        "options": OPTIONS,
        "masked": [False, True],
        "dtype, tolerance": [("float32", 1e-5), ("float64", 1e-10)],
    }
)
def test_outputs_and_gradients_equal_the_reference(shape, window, options, masked, dtype, tolerance):
    batch, _, seq, head_dim, value_dim = shape
    options = dict(options)
    if options.pop("packed", False):
        options["segment_ids"] = segments(batch, seq)
    if "v" in options.get("placement", ""):
        shape = (*shape[:-1], head_dim)
    exact = random_qkv(*shape)
    inputs = [x.detach().astype(dtype) for x in exact]
    for x in inputs:
        x.stop_gradient = False
    mask = ragged_mask(batch, seq) if masked else None
    arrays = {"key_mask": mask, "segment_ids": options.pop("segment_ids", None)}
    tensors = {name: None if array is None else paddle.to_tensor(array) for name, array in arrays.items()}
    attended = window_attention(*inputs, window, RotaryPositionEmbedding(head_dim), **tensors, **options)
    expected = reference.softmax_attention(*exact, range(seq), window=window, **arrays, **options)
    assert attended.dtype == inputs[0].dtype
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=tolerance)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((attended * towards.astype(dtype)).sum(), inputs)
    expected_gradients = paddle.grad((expected * towards).sum(), exact)
    for name, gradient, expected_gradient in zip("qkv", gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("seq, window", [(200, 20), (193, 70)])
def test_blocks_equal_softmax_attention_with_all_other_scores_far_down(seq, window, causal, monkeypatch):
    monkeypatch.undo()  # blocks as they are
    q, k, v = random_qkv(2, 2, seq, 6, 3)
    mask = paddle.to_tensor(ragged_mask(2, seq))
    lag = np.subtract.outer(np.arange(seq), np.arange(seq))
    inside = (np.abs(lag) <= window) & ((lag >= 0) | (not causal))
    outside = paddle.to_tensor(-1e3 * ~inside)
    rotary = RotaryPositionEmbedding(6)
    expected = softmax_attention(q, k, v, rotary, mask, causal=causal, score_bias=outside).numpy()
    attended = window_attention(q, k, v, window, rotary, mask, causal=causal).numpy()
    sees_some = (inside & mask.numpy()[:, np.newaxis]).any(axis=-1)
    np.testing.assert_allclose(attended[:, 0][sees_some], expected[:, 0][sees_some], rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"causal": True}], ids=str)
def test_a_window_over_the_whole_text_is_softmax_attention(options):
    q, k, v = random_qkv(2, 2, 11, 4, 3)
    mask = paddle.to_tensor(ragged_mask(2, 11))
    rotary = RotaryPositionEmbedding(4)
    for window in (10, 11, 500):
        attended = window_attention(q, k, v, window, rotary, mask, **options)
        expected = softmax_attention(q, k, v, rotary, mask, **options)
        np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=1e-14)
    assert float((window_attention(q, k, v, 2, rotary, mask, **options) - expected).abs().max()) > 1e-2


@pytest.mark.parametrize("seq", [6, 23])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_a_query_without_a_key_in_sight_gets_zero_and_no_gradient_is_nan(seq, causal):
    q, k, v = random_qkv(2, 1, seq, 4, 2, dtype="float32")
    mask = np.zeros((2, seq), dtype=bool)
    mask[0, 3] = True
    attended = window_attention(q, k, v, 2, None, paddle.to_tensor(mask), causal=causal)
    sees_some = [3, 4, 5] if causal else [1, 2, 3, 4, 5]
    np.testing.assert_allclose(attended.numpy()[0, 0, sees_some], [v.numpy()[0, 0, 3]] * len(sees_some), rtol=1e-6)
    others = [i for i in range(seq) if i not in sees_some]
    assert (attended.numpy()[0, 0, others] == 0).all() and (attended.numpy()[1] == 0).all()
    gradients = paddle.grad(attended.sum(), [q, k, v])
    assert all(bool(paddle.isfinite(x).all()) for x in gradients)
    assert float(gradients[2][0, 0, 3, 0]) == pytest.approx(len(sees_some))


def test_what_is_out_of_sight_has_no_influence():
    q, k, v = random_qkv(1, 2, 30, 4, 3, dtype="float32")
    attended = window_attention(q, k, v, 5)
    gradients = paddle.grad(attended[:, :, 12].sum(), [q, k, v], retain_graph=True)
    for gradient, (first, last) in zip(gradients, ((12, 12), (7, 17), (7, 17))):
        reached = np.flatnonzero(np.abs(gradient.numpy()).max(axis=(0, 1, 3)))
        assert (reached.min(), reached.max()) == (first, last)
    far = paddle.to_tensor(np.abs(np.arange(30) - 12) > 5).astype("float32").reshape([1, 1, 30, 1])
    other = window_attention(q, k + 30 * far, v - 500 * far, 5)
    np.testing.assert_array_equal(other[:, :, 12].numpy(), attended[:, :, 12].numpy())


def test_outputs_see_relative_positions_only():
    rotary = RotaryPositionEmbedding(8)
    q, k, v = random_qkv(1, 2, 26, 8, 4)
    shifted = window_attention(q, k, v, 3, lambda x: rotary(x, offset=321))
    np.testing.assert_allclose(shifted.numpy(), window_attention(q, k, v, 3, rotary).numpy(), rtol=0, atol=1e-10)
    assert float((shifted - window_attention(q, k, v, 3)).abs().max()) > 1e-2


@pytest.mark.parametrize("segmented", [False, True], ids=["", "packed"])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_fewer_queries_than_keys_are_the_last_ones(causal, segmented):
    q, k, v = random_qkv(2, 1, 37, 4, 3)
    options = {"causal": causal, "segment_ids": paddle.to_tensor(segments(2, 37)) if segmented else None}
    whole = window_attention(q, k, v, 3, **options).numpy()
    for queries in (36, 33, 20, 9, 1):
        last = window_attention(q[:, :, -queries:], k, v, 3, **options)
        np.testing.assert_allclose(last.numpy(), whole[:, :, -queries:], rtol=0, atol=1e-12)


def test_no_square_of_the_length_is_ever_held():
    # weights [seq, seq] of this length would be 160 GB
    seq = 200_000
    q, k, v = random_qkv(1, 1, seq, 2, 1, dtype="float32")
    attended = window_attention(
        q, k, v, 2, RotaryPositionEmbedding(2), segment_ids=paddle.arange(seq).unsqueeze(0) // 7
    )
    gradients = paddle.grad(attended.sum(), [q, k, v])
    assert attended.shape == [1, 1, seq, 1]
    assert all(bool(paddle.isfinite(x).all()) for x in (attended, *gradients))


def test_dropout_acts_on_the_weights():
    dropout = Dropout(0.5)
    q, k, _ = random_qkv(1, 1, 40, 4, 1, dtype="float32")
    v = paddle.eye(40).reshape([1, 1, 40, 40])  # the outputs are the weights
    weights = window_attention(q, k, v, 7).numpy()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    dropped = window_attention(q, k, v, 7, dropout=dropout).numpy()
    kept = dropped != 0
    assert 0.4 < kept.sum() / (weights != 0).sum() < 0.6
    np.testing.assert_allclose(dropped[kept], 2 * weights[kept], rtol=1e-5)


def test_wrong_arguments_are_an_error():
    qkv = random_qkv(1, 1, 5, 4, 3)
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        window_attention(*qkv, 0)
    with pytest.raises(ValueError, match="window must be at least 1, got -1"):
        MultiHeadAttention(12, 2, "window", window=-1)
    for attend in (softmax_attention, lambda *args, **options: window_attention(*args, 2, **options)):
        with pytest.raises(ValueError, match="placement"):
            attend(*qkv, placement="kq")
        with pytest.raises(ValueError, match="int32 or int64"):
            attend(*qkv, segment_ids=paddle.zeros([1, 5]))
