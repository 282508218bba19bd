"""Calls that do not fit: with native operators and without, both raise the same error or give the same numbers."""

import numpy as np
import paddle
import pytest

from paddle_rope import EfficientGlobalPointer, RoFormerConfig, RoFormerModel, RotaryPositionEmbedding
from paddle_rope.attention.multi_head import MultiHeadAttention
from paddle_rope.convolution import DepthwiseConvolution
from paddle_rope.layers import Dropout, LayerNorm, Linear, RMSNorm, residual_norm
from paddle_rope.native.attention import native_linear_attention, native_softmax_attention
from paddle_rope.native.dispatch import is_enabled, plain_forms
from tests.helpers.comparison import assert_close, random_tensor, randomize

BATCH, SEQ, HIDDEN, HEADS = 2, 5, 8, 2


def mask(*shape, dtype="bool"):
    """True but for the last number of the last axis, which every other row lacks."""
    values = np.ones(shape)
    values[..., -1] = 0
    return paddle.to_tensor(values.astype(dtype))


def segments(*shape, dtype="int64"):
    return paddle.to_tensor(np.sort(np.arange(np.prod(shape)).reshape(shape) % shape[-1] // 2, axis=-1).astype(dtype))


def tensor(*shape):
    return random_tensor(*shape, dtype="float32")


def layer_on(layer, *shape):
    """A call of the layer on random numbers, as a function, and the tensors whose gradients count."""
    x = tensor(*shape)
    randomize(layer)
    return lambda: layer(x), [x]


def attention(kind="softmax", shape=(BATCH, SEQ, HIDDEN), head_dim=None, positions=None, dropout=0.0, **options):
    given = {name: options.pop(name) for name in ("key_mask", "segment_ids") if name in options}
    layer, x = MultiHeadAttention(HIDDEN, HEADS, kind, dropout, **options), tensor(*shape)
    rope = (
        None if head_dim is None else RotaryPositionEmbedding(head_dim).cos_sin(SEQ if positions is None else positions)
    )
    return lambda: layer(x, rope, **given), [x]


def at_places(*shape):
    return {"head_dim": 4, "positions": paddle.to_tensor(np.arange(np.prod(shape)).reshape(shape))}


def convolution(**options):
    layer, x = randomize(DepthwiseConvolution(HIDDEN, 3)), tensor(BATCH, SEQ, HIDDEN)
    return lambda: layer(x, **options), [x]


def span_loss(hidden_size=HIDDEN, spans=((0, 0, 1), (1, 1, 2)), texts=BATCH, token_mask=None, positions=None):
    head, hidden = EfficientGlobalPointer(HIDDEN, 2, 4), tensor(BATCH, SEQ, hidden_size)
    places = paddle.to_tensor([list(spans)] * texts)
    return lambda: head.loss(hidden, places, token_mask, positions), [hidden]


def model(**options):
    config = RoFormerConfig(
        vocab_size=9, hidden_size=HIDDEN, num_hidden_layers=1, num_attention_heads=HEADS, intermediate_size=8
    )
    encoder, ids = RoFormerModel(config), paddle.ones([BATCH, SEQ], "int64")
    encoder.eval()
    return lambda: encoder(ids, **options)[0], []


def norm_of_sum(norm, residual_shape, p=0.0):
    residual, x = tensor(*residual_shape), tensor(BATCH, SEQ, HIDDEN)
    return lambda: residual_norm(norm, residual, x, Dropout(p)), [residual, x]


def biased(layer, size):
    layer.bias = paddle.create_parameter([size], "float32", is_bias=True)
    return layer


CALLS = {
    "linear: fewer features than weights": lambda: layer_on(Linear(32, 4), 3, 16),
    "linear: more features than weights": lambda: layer_on(Linear(8, 64), 3, 1000),
    "linear: a short bias": lambda: layer_on(biased(Linear(8, 4), 2), 3, 8),
    "linear: a bias of one number": lambda: layer_on(biased(Linear(8, 4), 1), 3, 8),
    "norm: fewer features": lambda: layer_on(LayerNorm(8), 3, 6),
    "norm: more features": lambda: layer_on(LayerNorm(8), 3, 12),
    "norm: residual of another batch": lambda: norm_of_sum(LayerNorm(HIDDEN), (3, SEQ, HIDDEN)),
    "norm: residual that broadcasts": lambda: norm_of_sum(RMSNorm(), (1, SEQ, HIDDEN)),
    "norm: a negative dropout": lambda: norm_of_sum(RMSNorm(), (BATCH, SEQ, HIDDEN), -0.5),
    "dropout: a negative probability": lambda: layer_on(Dropout(-0.5), 3, 6),
    "convolution: other features": lambda: layer_on(DepthwiseConvolution(8, 3), BATCH, SEQ, 6),
    "convolution: no batch": lambda: layer_on(DepthwiseConvolution(8, 3), SEQ, 8),
    "convolution: another axis": lambda: layer_on(DepthwiseConvolution(8, 3), 1, SEQ, 8, 3),
    "convolution: a short mask": lambda: convolution(key_mask=mask(BATCH, SEQ - 1)),
    "convolution: one mask for all": lambda: convolution(key_mask=mask(1, SEQ)),
    "convolution: a mask of numbers": lambda: convolution(key_mask=mask(BATCH, SEQ, dtype="float32") * 0.5),
    "convolution: short segments": lambda: convolution(segment_ids=segments(BATCH, SEQ - 1)),
    "convolution: segments of one text": lambda: convolution(segment_ids=segments(1, SEQ)),
    "convolution: real segments": lambda: convolution(segment_ids=segments(BATCH, SEQ, dtype="float32") / 4),
    "softmax: a short mask": lambda: attention(key_mask=mask(BATCH, SEQ - 1)),
    "softmax: one mask for all": lambda: attention(key_mask=mask(1, SEQ)),
    "softmax: a mask of another batch": lambda: attention(key_mask=mask(BATCH + 1, SEQ)),
    "softmax: a mask of integers": lambda: attention(key_mask=mask(BATCH, SEQ, dtype="int64")),
    "softmax: short segments": lambda: attention(segment_ids=segments(BATCH, SEQ - 1)),
    "softmax: segments of one text": lambda: attention(segment_ids=segments(1, SEQ)),
    "softmax: real segments": lambda: attention(segment_ids=segments(BATCH, SEQ, dtype="float32")),
    "softmax: RoPE of smaller heads": lambda: attention(head_dim=2),
    "softmax: RoPE of larger heads": lambda: attention(head_dim=6),
    "softmax: few positions": lambda: attention(**at_places(SEQ - 1)),
    "softmax: positions of another batch": lambda: attention(**at_places(BATCH + 1, SEQ)),
    "softmax: a negative dropout": lambda: attention(dropout=-0.25),
    "softmax: another hidden size": lambda: attention(shape=(BATCH, SEQ, 6)),
    "linear attention: one mask for all": lambda: attention("linear", key_mask=mask(1, SEQ)),
    "linear attention: a mask of numbers": lambda: attention("linear", key_mask=2 * mask(BATCH, SEQ, dtype="float32")),
    "linear attention: a short mask": lambda: attention("linear", key_mask=mask(BATCH, SEQ - 1)),
    "linear attention: few decays": lambda: attention("linear", decay=[0.9]),
    "linear attention: many decays": lambda: attention("linear", decay=[0.9] * 3, causal=True),
    "linear attention: a decay above 1": lambda: attention("linear", decay=[0.9, 1.5]),
    "linear attention: a decay of 0": lambda: attention("linear", decay=[0.9, 0.0], causal=True),
    "linear attention: RoPE of larger heads": lambda: attention("linear", head_dim=6),
    "linear attention: many positions": lambda: attention("linear", **at_places(BATCH, SEQ + 1)),
    "loss: other features": lambda: span_loss(hidden_size=4),
    "loss: spans of more texts": lambda: span_loss(texts=BATCH + 1),
    "loss: a short mask": lambda: span_loss(token_mask=mask(BATCH, SEQ - 1)),
    "loss: one mask for all": lambda: span_loss(token_mask=mask(1, SEQ)),
    "loss: few positions": lambda: span_loss(positions=paddle.arange(SEQ - 2)),
    "loss: positions of another batch": lambda: span_loss(positions=paddle.ones([BATCH + 1, SEQ], "int64")),
    "loss: a masked last token of a span": lambda: span_loss(spans=[(0, 1, 4)], token_mask=mask(BATCH, SEQ)),
    "loss: a masked span": lambda: span_loss(spans=[(0, 4, 4), (1, 0, 1)], token_mask=mask(BATCH, SEQ)),
    "model: a short mask": lambda: model(attention_mask=mask(BATCH, SEQ - 1)),
    "model: few positions": lambda: model(positions=paddle.arange(SEQ - 1).unsqueeze(0)),
    "model: short segments": lambda: model(segment_ids=segments(BATCH, SEQ - 1)),
}


def outcome(call, inputs):
    """The error's type, or [output, gradients]."""
    np.random.seed(1)
    try:
        output = call()
        if inputs:  # backward, since paddle.grad is not for the operators unless it takes all parameters
            output.sum().backward()
        results = [output.numpy(), *(x.grad.numpy() for x in inputs)]
    except Exception as error:
        return type(error)
    for x in inputs:
        x.clear_gradient(set_to_zero=False)
    return results


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_does_not_fit_ends_as_that_of_the_plain_form(name):
    call, inputs = CALLS[name]()
    assert is_enabled(*inputs)
    native = outcome(call, inputs)
    with plain_forms():
        plain = outcome(call, inputs)
    if isinstance(plain, type):
        assert native is plain
        return
    assert not isinstance(native, type), native
    for one, other in zip(native, plain):
        assert_close(one, other, 2e-5)


def test_operators_alone_leave_what_does_not_fit():
    q, k = tensor(BATCH, 2, HEADS, 4), tensor(BATCH, SEQ, HEADS, 4)
    for native, options in (
        (native_softmax_attention, (None, None, 0.0, None, False)),
        (native_linear_attention, (None, None, "unrotated", False, None)),
    ):
        assert native(q, k, k, *options) is None and native(k, k, q, *options) is None
        assert native(*3 * [k[:, :, 0]], *options) is None and native(k, k, k, *options) is not None
