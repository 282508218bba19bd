"""Calls that do not fit: with native operators and without, both raise the same error or give the same numbers."""

import numpy as np
import paddle
import pytest

from paddle_rope import EfficientGlobalPointer, RotaryPositionEmbedding, linear_attention, softmax_attention
from paddle_rope.layers import Dropout, Linear, RMSNorm, residual_norm
from paddle_rope.native.attention import native_linear_attention, native_softmax_attention
from paddle_rope.native.dispatch import is_enabled, plain_forms
from tests.helpers.comparison import assert_close, random_tensor
from tests.paddle_rope.native.operators import MASK, OPERATORS

CHANGES = {  # of one argument
    "longer": lambda x: paddle.concat([x, x[..., -1:]], axis=-1),
    "shorter": lambda x: x[..., :-1],
    "fewer rows": lambda x: x[:-1],
    "more rows": lambda x: paddle.concat([x, x]),
    "one row": lambda x: x[:1],
    "one axis less": lambda x: x[0],
    "one axis more": lambda x: x.unsqueeze(0),
    "real": lambda x: x.astype("float32") * 0.5,
    "integer": lambda x: x.astype("int64"),
}


def tensor(*shape):
    return random_tensor(*shape, dtype="float32")


def outcome(call, inputs):
    """The error's type, or [output, gradients]."""
    np.random.seed(1)
    try:
        output = call()
        output.sum().backward()
        results = [output.numpy(), *(x.grad.numpy() for x in inputs if x.grad is not None)]
    except Exception as error:
        return type(error)
    finally:
        for x in inputs:
            x.clear_gradient(set_to_zero=False)
    return results


def assert_ends_as_the_plain_form(call, inputs):
    native = outcome(call, inputs)
    with plain_forms():
        plain = outcome(call, inputs)
    if isinstance(plain, type):
        assert native is plain
        return
    assert not isinstance(native, type), native
    for one, other in zip(native, plain, strict=True):
        assert_close(one, other, 2e-5)


@pytest.mark.parametrize("name", [name for name in OPERATORS if "dropout" not in name and "loss" not in name])
def test_an_argument_that_does_not_fit_ends_as_in_the_plain_form(name):
    operator = OPERATORS[name]
    for place, shape in enumerate(operator.shapes):
        for kind, change in CHANGES.items():
            if kind in ("real", "integer") and not isinstance(shape, str):
                continue
            arguments = [one.detach() for one in operator.arguments()]
            arguments[place] = change(arguments[place])
            for one, original in zip(arguments, operator.shapes):
                one.stop_gradient = isinstance(original, str)
            inputs = [one for one in arguments if not one.stop_gradient]
            assert_ends_as_the_plain_form(lambda arguments=arguments: operator(*arguments), inputs)


def qkv(function, head_dim=None, positions=5, **options):
    given = [tensor(2, 5, 2, 4) for _ in range(3)]
    rope = None if head_dim is None else RotaryPositionEmbedding(head_dim).cos_sin(positions)
    return lambda: function(*given, rope, **options), given


def head_loss(spans=((0, 0, 1), (1, 1, 2)), texts=2, token_mask=None, positions=None):
    head, hidden = EfficientGlobalPointer(8, 2, 4), tensor(2, 5, 8)
    places = paddle.to_tensor([list(spans)] * texts)
    return lambda: head.loss(hidden, places, token_mask, positions), [hidden]


def short_bias():
    layer, x = Linear(8, 4), tensor(3, 8)
    layer.bias = paddle.create_parameter([1], "float32", is_bias=True)
    return lambda: layer(x), [x]


def negative_dropout():
    x = tensor(2, 5, 6)
    return lambda: residual_norm(RMSNorm(), x, x, Dropout(-0.5)), [x]


NUMBERS = paddle.to_tensor(np.arange(15).reshape(3, 5))
LAST_MASKED = paddle.to_tensor(np.arange(5) < 4).unsqueeze(0).tile([2, 1])
CALLS = {
    "RoPE of smaller heads": lambda: qkv(softmax_attention, 2),
    "RoPE of larger heads": lambda: qkv(softmax_attention, 6),
    "few positions": lambda: qkv(softmax_attention, 4, 4),
    "positions of another batch": lambda: qkv(softmax_attention, 4, NUMBERS),
    "a negative dropout": lambda: qkv(softmax_attention, dropout=-0.25),
    "RoPE of larger heads, linear": lambda: qkv(linear_attention, 6),
    "many positions, linear": lambda: qkv(linear_attention, 4, 6),
    "a mask of numbers, linear": lambda: qkv(linear_attention, key_mask=2.0 * paddle.to_tensor(MASK).astype("float32")),
    **{
        f"decay {decay}": lambda decay=decay: qkv(linear_attention, decay=decay)
        for decay in ([0.9], [0.9] * 3, [0.9, 1.5], [0.9, 0.0])
    },
    "a bias of one number": short_bias,
    "a negative dropout of a norm": negative_dropout,
    "spans of more texts": lambda: head_loss(texts=3),
    "a short mask of spans": lambda: head_loss(token_mask=LAST_MASKED[:, :4]),
    "few positions of spans": lambda: head_loss(positions=paddle.arange(3)),
    "positions of spans of another batch": lambda: head_loss(positions=NUMBERS),
    "a masked last token of a span": lambda: head_loss([(0, 1, 4)], token_mask=LAST_MASKED),
    "a masked span": lambda: head_loss([(0, 4, 4), (1, 0, 1)], token_mask=LAST_MASKED),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_does_not_fit_ends_as_that_of_the_plain_form(name):
    call, inputs = CALLS[name]()
    assert is_enabled(*inputs)
    assert_ends_as_the_plain_form(call, inputs)


def test_operators_alone_leave_what_does_not_fit():
    q, k = tensor(2, 2, 2, 4), tensor(2, 5, 2, 4)
    for native, options in (
        (native_softmax_attention, (None, None, 0.0, None, False)),
        (native_linear_attention, (None, None, "unrotated", False, None)),
    ):
        assert native(q, k, k, *options) is None and native(k, k, q, *options) is None
        assert native(*3 * [k[:, :, 0]], *options) is None and native(k, k, k, *options) is not None
