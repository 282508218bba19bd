"""Causal attention that goes on from a state gives what it gives for the whole."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import (
    MultiHeadAttention,
    RotaryPositionEmbedding,
    alibi_bias,
    alibi_slopes,
    causal_linear_attention,
    softmax_attention,
)
from paddle_rope.attention import KeyValueState, LinearAttentionState, linear_attention_step
from tests.pairwise import pairwise

CUTS = [[9], [1] * 9, [4, 1, 1, 3], [1, 8]]


def random_layer(kind, **options):
    layer = MultiHeadAttention(12, 2, kind, causal=True, **options)
    for parameter in layer.parameters():
        parameter.set_value(paddle.to_tensor(np.random.standard_normal(parameter.shape) / 2, dtype="float32"))
    layer.eval()
    return layer


def random_hidden(batch=2, seq=9):
    return paddle.to_tensor(np.random.standard_normal((batch, seq, 12)), dtype="float32")


def extended(layer, hidden, pieces, key_mask=None):
    """Outputs piece by piece, and the last state."""
    rotary, state, outputs, start = RotaryPositionEmbedding(6), None, [], 0
    for length in pieces:
        end = start + length
        mask = None if key_mask is None else key_mask[:, :end]
        output, state = layer.extend(hidden[:, start:end], state, partial(rotary, offset=start), mask)
        outputs.append(output)
        start = end
    return paddle.concat(outputs, axis=1), state


@pairwise(
    {
        "placement": ["qk", "vo", "qkvo", "qkv", "o"],
        "pieces": CUTS,
        "kind": ["softmax", "linear", "window"],
        "share_kv": [False, True],
    }
)
def test_pieces_give_the_whole(kind, share_kv, placement, pieces):
    layer = random_layer(kind, placement=placement, share_kv=share_kv, window=3)
    hidden = random_hidden()
    whole = layer(hidden, RotaryPositionEmbedding(6))
    outputs, state = extended(layer, hidden, pieces)
    np.testing.assert_allclose(outputs.numpy(), whole.numpy(), rtol=0, atol=2e-5)
    assert isinstance(state, LinearAttentionState if kind == "linear" else KeyValueState)
    if kind == "window":
        assert state.keys.shape == [2, 2, 3, 6]


@pytest.mark.parametrize("normalizer", ["unrotated", "rotated", "none"])
@pytest.mark.parametrize("decay", [None, [0.9, 0.5]], ids=["", "decay"])
def test_pieces_give_the_whole_for_linear_options(normalizer, decay):
    layer = random_layer("linear", normalizer=normalizer, decay=decay)
    hidden = random_hidden()
    whole = layer(hidden, RotaryPositionEmbedding(6))
    outputs, _ = extended(layer, hidden, [3, 1, 5])
    np.testing.assert_allclose(outputs.numpy(), whole.numpy(), rtol=0, atol=1e-3 * float(whole.abs().max()))


@pytest.mark.parametrize("kind", ["softmax", "window", "linear"])
def test_padding_on_the_left_enters_no_state(kind):
    layer = random_layer(kind, window=2)
    hidden = random_hidden()
    mask = paddle.to_tensor(np.arange(9) >= np.array([[3], [0]]))
    outputs, _ = extended(layer, hidden, [5, 2, 2], mask)
    np.testing.assert_allclose(
        outputs[0, 3:].numpy(), layer(hidden[:1, 3:], RotaryPositionEmbedding(6))[0].numpy(), rtol=0, atol=2e-5
    )
    np.testing.assert_allclose(
        outputs[1].numpy(), layer(hidden[1:], RotaryPositionEmbedding(6))[0].numpy(), rtol=0, atol=2e-5
    )


@pytest.mark.parametrize("placement, one_tensor", [("qkvo", True), ("qo", True), ("qk", False), ("vo", False)])
def test_the_cache_of_shared_keys_and_values_is_one_tensor_where_both_turn_or_none(placement, one_tensor):
    _, state = extended(random_layer("softmax", placement=placement, share_kv=True), random_hidden(), [4, 5])
    assert state.keys.shape == [2, 2, 9, 6]
    assert (state.values is None) == one_tensor


def test_states_are_not_changed_so_that_texts_can_branch():
    for kind in ("softmax", "linear", "window"):
        layer = random_layer(kind, window=3)
        hidden = random_hidden(batch=1)
        rotary = RotaryPositionEmbedding(6)
        _, state = layer.extend(hidden[:, :4], None, rotary)
        before = [x.numpy().copy() for x in state if isinstance(x, paddle.Tensor)]
        first = layer.extend(hidden[:, 4:5], state, partial(rotary, offset=4))[0].numpy()
        layer.extend(hidden[:, 5:6], state, partial(rotary, offset=4))
        np.testing.assert_array_equal(layer.extend(hidden[:, 4:5], state, partial(rotary, offset=4))[0].numpy(), first)
        for old, new in zip(before, (x.numpy() for x in state if isinstance(x, paddle.Tensor))):
            np.testing.assert_array_equal(old, new)


def test_alibi_goes_on_from_a_cache():
    layer = random_layer("softmax")
    hidden, slopes = random_hidden(), alibi_slopes(2)
    positions = paddle.arange(9).unsqueeze(0)
    whole = layer(hidden, score_bias=alibi_bias(slopes, positions, positions))
    first, state = layer.extend(hidden[:, :6], score_bias=alibi_bias(slopes, positions[:, :6], positions[:, :6]))
    rest, _ = layer.extend(hidden[:, 6:], state, score_bias=alibi_bias(slopes, positions[:, 6:], positions))
    np.testing.assert_allclose(paddle.concat([first, rest], axis=1).numpy(), whole.numpy(), rtol=0, atol=1e-5)


def test_the_parallel_form_leaves_the_state_of_the_steps():
    q, k, v = (paddle.to_tensor(np.random.standard_normal((2, 2, 70, 4))) for _ in range(3))
    rotary = RotaryPositionEmbedding(4)
    for normalizer in ("unrotated", "none"):
        options = {"normalizer": normalizer, "decay": [0.99, 0.8]}
        state = None
        for index in range(70):
            token = (x[:, :, index : index + 1] for x in (q, k, v))
            state, _ = linear_attention_step(state, *token, rotary, **options)
        first, _ = causal_linear_attention(*(x[:, :, :41] for x in (q, k, v)), rotary, return_state=True, **options)
        parallel, _ = causal_linear_attention(
            *(x[:, :, 41:] for x in (q, k, v)), partial(rotary, offset=41), state=first, return_state=True, **options
        )
        assert first.length == 41 and parallel.length == state.length == 70
        np.testing.assert_allclose(parallel.key_values.numpy(), state.key_values.numpy(), rtol=0, atol=1e-10)
        if normalizer == "none":
            assert parallel.keys is None
        else:
            np.testing.assert_allclose(parallel.keys.numpy(), state.keys.numpy(), rtol=0, atol=1e-10)


def test_gradients_reach_the_tokens_of_an_earlier_state():
    tensors = [paddle.to_tensor(np.random.standard_normal((1, 2, 8, 4)), stop_gradient=False) for _ in range(3)]
    rotary = RotaryPositionEmbedding(4)
    decay = paddle.to_tensor([0.9, 0.7], dtype="float64", stop_gradient=False)
    whole = causal_linear_attention(*tensors, rotary, decay=decay)[:, :, 5:]
    state, _ = causal_linear_attention(*(x[:, :, :5] for x in tensors), rotary, decay=decay, return_state=True)
    rest = causal_linear_attention(*(x[:, :, 5:] for x in tensors), partial(rotary, offset=5), decay=decay, state=state)
    np.testing.assert_allclose(rest.numpy(), whole.numpy(), rtol=0, atol=1e-12)
    towards = paddle.to_tensor(np.random.standard_normal(whole.shape))
    gradients = paddle.grad((rest * towards).sum(), [*tensors, decay])
    for gradient, expected in zip(gradients, paddle.grad((whole * towards).sum(), [*tensors, decay])):
        np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=0, atol=1e-10)


def test_fewer_queries_than_keys_are_the_last_ones():
    q, k, v = (paddle.to_tensor(np.random.standard_normal((1, 2, 6, 4))) for _ in range(3))
    for causal in (False, True):
        whole = softmax_attention(q, k, v, causal=causal)[:, :, 4:]
        np.testing.assert_allclose(
            softmax_attention(q[:, :, 4:], k, v, causal=causal).numpy(), whole.numpy(), rtol=0, atol=1e-12
        )


def test_what_has_no_state_is_an_error():
    with pytest.raises(ValueError, match="causal"):
        MultiHeadAttention(12, 2).extend(random_hidden())
    with pytest.raises(ValueError, match="causal"):
        MultiHeadAttention(12, 2, "linear", decay=[0.5, 0.5]).extend(random_hidden())
    q = paddle.ones([1, 1, 3, 4])
    with pytest.raises(ValueError, match="segment_ids"):
        causal_linear_attention(q, q, q, segment_ids=paddle.zeros([1, 3], dtype="int64"), return_state=True)
