"""Native forms end as the plain ones: calls that do not fit or have no native form, long texts, bounds."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from paddle_rope import (
    EfficientGlobalPointer,
    RotaryPositionEmbedding,
    YaRNScaling,
    linear_attention,
    linear_attention_step,
    softmax_attention,
)
from paddle_rope.attention.feature_maps import elu_plus_one
from paddle_rope.layers import Dropout, Linear, RMSNorm, linear, residual_norm, shapes_only
from paddle_rope.native import dispatch, operators, products
from paddle_rope.native.dispatch import is_enabled, plain_forms, switched_on
from paddle_rope.native.library import call
from tests.helpers.comparison import assert_close, assert_same, is_native, random_tensor
from tests.paddle_rope.attention.kernels import in_pieces, random_qkv, rope_of
from tests.paddle_rope.native.operators import MASK, OPERATORS

CHANGES = {  # of one argument
    "longer": lambda x: paddle.concat([x, x[..., -1:]], axis=-1),
    "shorter": lambda x: x[..., :-1],
    "fewer rows": lambda x: x[:-1],
    "fewer tokens": lambda x: x[:, :-1] if x.ndim > 1 else x[:0],
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
    paddle.seed(1)
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


# not what checks the same as another one, draws random numbers, or takes spans
OTHERS = ("linear with ", "wide", "convolution of", "layer norm with", "dropout", "span loss")


@pytest.mark.parametrize("name", [name for name in OPERATORS if not name.startswith(OTHERS)])
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


def attended(function, rotary=None, positions=5, **options):
    """``rotary``: a rotation, or the size of the heads that it is for."""
    given = random_qkv(2, 5, 2, dtype="float32")
    rotary = RotaryPositionEmbedding(rotary) if isinstance(rotary, int) else rotary
    learned = [] if rotary is None else rotary.parameters()
    learned += [options["decay"]] if "decay" in options else []
    return lambda: function(*given, rotary and rotary.cos_sin(positions), **options), [*given, *learned]


def head_loss(spans=((0, 0, 1), (1, 1, 2)), texts=2, token_mask=None, positions=None):
    head, hidden = EfficientGlobalPointer(8, 2, 4), tensor(2, 5, 8)
    places = paddle.to_tensor([list(spans)] * texts)
    return lambda: head.loss(hidden, places, token_mask, positions), [hidden]


def of_layer(layer):
    x = tensor(2, 5, 6)
    return lambda: layer(x), [x]


NUMBERS = paddle.to_tensor(np.arange(15).reshape(3, 5))
LAST_MASKED = paddle.to_tensor(np.arange(5) < 4).unsqueeze(0).tile([2, 1])
CALLS = {
    "RoPE of smaller heads": lambda: attended(softmax_attention, 2),
    "RoPE of larger heads": lambda: attended(softmax_attention, 6),
    "few positions": lambda: attended(softmax_attention, 4, 4),
    "positions of another batch": lambda: attended(softmax_attention, 4, NUMBERS),
    "negative dropout": lambda: attended(softmax_attention, dropout=-0.25),
    "RoPE of larger heads, linear": lambda: attended(linear_attention, 6),
    "mask of numbers, linear": lambda: attended(linear_attention, key_mask=paddle.to_tensor(2.0 * MASK, "float32")),
    "score bias": lambda: attended(softmax_attention, score_bias=tensor(2, 2, 5, 5).detach()),
    "trained decay": lambda: attended(linear_attention, decay=paddle.to_tensor([0.5, 0.9], stop_gradient=False)),
    "learned RoPE": lambda: attended(softmax_attention, RotaryPositionEmbedding(4, learned=True)),
    "whole numbers": lambda: (lambda: linear(paddle.ones([2, 6], "int64"), tensor(6, 4), None), []),
    "truth values": lambda: (lambda: softmax_attention(*[paddle.ones([2, 5, 2, 4], "bool")] * 3), []),
    "integer as epsilon": lambda: of_layer(RMSNorm(1)),
    "negative dropout of a norm": lambda: of_layer(lambda x: residual_norm(RMSNorm(), x, x, Dropout(-0.5))),
    "spans of more texts": lambda: head_loss(texts=3),
    "short mask of spans": lambda: head_loss(token_mask=LAST_MASKED[:, :4]),
    "few positions of spans": lambda: head_loss(positions=paddle.arange(3)),
    "masked last token of a span": lambda: head_loss([(0, 1, 4)], token_mask=LAST_MASKED),
    "masked span": lambda: head_loss([(0, 4, 4), (1, 0, 1)], token_mask=LAST_MASKED),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_does_not_fit_ends_as_that_of_the_plain_form(name):
    call, inputs = CALLS[name]()
    assert is_enabled(*inputs)
    assert_ends_as_the_plain_form(call, inputs)


def test_no_native_form_computes_under_automatic_mixed_precision(amp_as_on_gpu):
    assert not is_enabled(tensor(2, 3))


@pytest.mark.parametrize("there", ["q", "cos", "sin"])
def test_no_native_form_reads_a_tensor_of_another_device(there, monkeypatch):
    q, rope = tensor(1, 3, 2, 4), RotaryPositionEmbedding(4).cos_sin(3)
    assert is_native(softmax_attention(q, q, q, rope))
    given, here, gpu = {"q": q, **rope._asdict()}, q.place, SimpleNamespace(is_cpu_place=lambda: False)
    monkeypatch.setattr(dispatch, "_HAS_DEVICES", True)
    assert is_native(softmax_attention(q, q, q, rope))
    monkeypatch.setattr(paddle.Tensor, "place", property(lambda x: gpu if x is given[there] else here))
    assert not is_native(softmax_attention(q, q, q, rope))


@pytest.mark.parametrize("context, is_on", [  # whether it is on in this thread
    (plain_forms, lambda: not is_enabled()),
    (shapes_only, lambda: not Linear(1, 1).weight._is_initialized()),
    (partial(switched_on, products._is_rounding), products.are_rounded),
], ids=["plain forms", "shapes only", "products in bfloat16"])  # fmt: skip
def test_what_a_thread_switches_on_is_off_in_another_and_afterwards(context, is_on):
    with context(), ThreadPoolExecutor() as other:
        assert is_on() and not other.submit(is_on).result()
    assert not is_on()


# ---- attention: long texts, several heads, bounds
DIM = 8


def assert_native_equals_plain(attend, inputs, tolerance=3e-4, least=0.0):
    found = attend()
    with plain_forms():
        expected = attend()
    assert is_native(found) and not is_native(expected) and float(found.abs().max()) > least
    assert_same(found, expected, inputs, atol=tolerance)


@pytest.mark.parametrize("normalizer", ["unrotated", "none"])
@pytest.mark.parametrize("decay", [None, (1, 1, 0.99, 1, 1, 1), (0.5, 1, 1, 1, 1, 0.8)], ids=["none", "third", "outer"])
def test_heads_that_are_computed_together_do_not_mix(decay, normalizer):
    inputs = random_qkv(2, 150, 6, DIM, DIM, "float32")  # more heads than are taken together; others between them
    rope = RotaryPositionEmbedding(DIM, scaling=YaRNScaling(4.0, 32)).cos_sin(150)
    assert_native_equals_plain(lambda: linear_attention(*inputs, rope, normalizer=normalizer, decay=decay), inputs)


@pytest.mark.parametrize("layout, options", [
    ("interleaved", {}),
    ("half", {"decay": (0.5, 1, 0.8)}),
    ("interleaved", {"decay": (0.5, 1, 0.8), "normalizer": "none"}),
    (None, {}),
], ids=["plain", "decay", "output norm", "no position"])  # fmt: skip
@paddle.no_grad()
def test_a_token_after_others_has_the_output_of_the_plain_form(layout, options, monkeypatch):
    q, k, v = random_qkv(2, 6, 3, DIM, DIM, "float32")
    odd, positions = 20.0 * (paddle.arange(DIM) % 2), paddle.to_tensor([[0.0, 1, 2, 3, 4, 5], [3.0, 4, 5, 6, 7, 8]])
    rope = layout and rope_of(q, positions=positions, layout=layout)
    mask = paddle.to_tensor([[True] * 6, [True] * 4 + [False, True]])
    given = q - odd, k + odd - 20.0, v, rope, mask  # features that hardly overlap: q . k is bounded
    calls = []
    monkeypatch.setattr(operators, "call", lambda name, *given: calls.append(name) or call(name, *given))
    found = in_pieces(*given, **options)
    assert calls == ["linear_attention_step"] * 2  # the last sees the state of the one before
    with plain_forms():
        expected = in_pieces(*given, **options)
    assert len(calls) == 2
    assert_close(found, expected, 1e-5)


REFUSED_STATES = {
    "float64": lambda state: state._replace(key_values=state.key_values.astype("float64")),
    "of another batch": lambda state: state._replace(keys=state.keys[:1]),
    "of other features": lambda state: state._replace(key_values=state.key_values[:, :, 1:]),
    "of other values": lambda state: state._replace(key_values=state.key_values[..., 1:]),
    "without keys": lambda state: state._replace(keys=None),
}


@pytest.mark.parametrize("changed", REFUSED_STATES.values(), ids=REFUSED_STATES)
@paddle.no_grad()
def test_a_state_that_does_not_fit_the_tokens_is_for_the_plain_form(changed, monkeypatch):
    qkv = random_qkv(2, 1, 3, DIM, DIM, "float32")
    state, _ = linear_attention_step(None, *qkv)
    called = []
    monkeypatch.setattr(operators, "call", lambda name, *_: called.append(name))
    with contextlib.suppress(ValueError):  # of Paddle, about shapes
        linear_attention_step(changed(state), *qkv)
    assert called == []


@pytest.mark.parametrize("lowest", [-60.0, -75.0], ids=["above the bound", "below the bound"])
def test_small_denominators_and_root_mean_squares_are_bounded_as_in_the_plain_form(lowest):
    inputs = q, k, v = random_qkv(1, 5, 2, DIM, DIM, "float32")
    few, many = q + lowest, float(np.exp(max(0.0, -70 - lowest))) * v
    assert_native_equals_plain(lambda: linear_attention(few, k, many), inputs, 1e-3, least=0.01)
    small = 0.1 * q - 15.0  # features of 3e-7
    assert_native_equals_plain(lambda: linear_attention(small, k, v, normalizer="none"), inputs, 1e-4)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
@pytest.mark.parametrize("rest, least", [(1.0, 0.0), (1e-3, 1e-6), (1e-6, 1e-3)])
def test_without_denominator_the_forms_differ_by_rounding_over_the_root_mean_square(rest, least, causal):
    q, k, v = (x.numpy() for x in random_qkv(50, 8, 2, 2, 2, "float32"))
    k[:, 1::2], v[:, 1::2] = k[:, ::2], rest * v[:, 1::2] - v[:, ::2]  # terms that cancel but for a rest
    given = [paddle.to_tensor(x) for x in (q, k, v)]
    native = linear_attention(*given, normalizer="none", causal=causal).numpy()
    with plain_forms():
        plain = linear_attention(*given, normalizer="none", causal=causal).numpy()
    phi_q, phi_k = (elu_plus_one(x.astype("float64")).numpy() for x in given[:2])
    products = np.einsum("bihf,bjhf->bhij", phi_q, phi_k) * (np.tri(8) if causal else 1)
    numerator, terms = (np.einsum("bhij,bjhd->bihd", products, x) for x in (v.astype("float64"), np.abs(v)))
    mean_square = (numerator**2).mean(axis=-1, keepdims=True) + 1e-12
    bound = 2.0**-20 * np.linalg.norm(terms, axis=-1, keepdims=True) / np.sqrt(mean_square)
    assert (np.abs(native - plain) <= bound).all() and np.abs(native - plain).max() >= least


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
def test_powers_of_the_decay_down_to_1e_30_count(causal):
    seq, gamma = 60, 0.3
    q, k, v = random_qkv(1, seq, 1, DIM, DIM, "float32")
    distances = np.arange(seq)[::-1].reshape(1, seq, 1, 1)  # to the last token, where all values count alike
    v.set_value((np.abs(v.numpy()) * gamma ** -np.minimum(distances, 50.0)).astype("float32"))
    options = {"decay": [gamma], "causal": causal}
    found = linear_attention(q, k, v, **options).numpy()[0, -1]
    with plain_forms():
        expected = linear_attention(q, k, v, **options).numpy()[0, -1]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
