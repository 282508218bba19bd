"""Several products x W + b of one input against their plain forms."""

import sys

import numpy as np
import paddle
import pytest

from paddle_rope import layers as layers_module
from paddle_rope.attention import MultiHeadAttention
from paddle_rope.layers import Linear, projections
from paddle_rope.native.library import plain_forms
from paddle_rope.native.products import bfloat16_products
from paddle_rope.native.projections import native_projections
from tests.native.comparison import assert_same, kept_without_backward, tensor


def layers_of(*widths, bias=None):
    layers = [Linear(6, width, bias_attr=bias) for width in widths]
    for layer in layers:
        for parameter in layer.parameters():
            parameter.set_value(tensor(*parameter.shape))
    return layers


@pytest.mark.parametrize("bias", [None, False], ids=["bias", "no bias"])
def test_projections_equal_the_plain_form(bias):
    layers, x = layers_of(4, 19, 4, bias=bias), tensor(2, 5, 6)

    def together():
        return paddle.concat(list(projections(x, *layers)), axis=-1)

    def plain():
        with plain_forms():
            return together()

    assert native_projections(x, [layer.weight for layer in layers], [layer.bias for layer in layers]) is not None
    assert_same(together, plain, [x, *(parameter for layer in layers for parameter in layer.parameters())])


def test_what_needs_no_gradient_gets_none():
    (first, second), x = layers_of(3, 4), tensor(2, 6)
    first.weight.stop_gradient = second.bias.stop_gradient = True
    a, b = projections(x, first, second)
    (a.sum() + b.sum()).backward()
    assert first.weight.grad is None and second.bias.grad is None
    np.testing.assert_allclose(first.bias.grad.numpy(), np.full(3, 2.0))
    np.testing.assert_allclose(second.weight.grad.numpy(), np.tile(x.numpy().sum(0)[:, None], 4), rtol=1e-5)
    np.testing.assert_allclose(
        x.grad.numpy(), np.tile(first.weight.numpy().sum(1) + second.weight.numpy().sum(1), (2, 1)), rtol=1e-5
    )


def test_an_output_that_nobody_uses_leaves_the_others_their_gradients():
    (first, second), x = layers_of(3, 4), tensor(2, 6)
    projections(x, first, second)[0].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.tile(first.weight.numpy().sum(1), (2, 1)), rtol=1e-5)


def test_a_layer_in_the_place_of_a_linear_one_is_called():
    class Twice(Linear):
        def forward(self, x, activation=None):
            return 2 * super().forward(x, activation)

    first, second, x = Linear(6, 3), Twice(6, 3), tensor(2, 6)
    a, b = projections(x, first, second)
    np.testing.assert_allclose(a.numpy(), first(x).numpy())
    np.testing.assert_allclose(b.numpy(), 2 * Linear.forward(second, x).numpy())


def test_factors_are_rounded_to_bfloat16(has_bfloat16):
    layers, x = layers_of(16, 24), tensor(4, 9, 6)
    towards = tensor(4, 9, 40)
    found = []
    for together in (True, False):
        x.clear_gradient()
        with bfloat16_products():
            y = paddle.concat(list(projections(x, *layers)) if together else [layer(x) for layer in layers], axis=-1)
        (y * towards).sum().backward()
        found.append((y.numpy(), x.grad.numpy(), layers[1].weight.grad.numpy()))
        for layer in layers:
            layer.clear_gradients()
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    exact = np.concatenate([x.numpy() @ layer.weight.numpy() + layer.bias.numpy() for layer in layers], -1)
    assert 1e-4 < np.abs(found[0][0] - exact).max() < 0.1


@pytest.mark.parametrize("options", [{}, {"share_kv": True}, {"output_gate": True}], ids=str)
def test_attention_calls_one_operator_for_all_projections_of_its_input(monkeypatch, options):
    counts = []

    def counting(x, weights, biases):
        counts.append(len(weights))
        return native_projections(x, weights, biases)

    monkeypatch.setattr(layers_module, "native_projections", counting)
    attention, hidden = MultiHeadAttention(8, 2, **options), tensor(2, 5, 8)
    y = attention(hidden)
    assert counts == [3 - ("share_kv" in options) + ("output_gate" in options)]
    with plain_forms():
        np.testing.assert_allclose(y.numpy(), attention(hidden).numpy(), rtol=0, atol=1e-5)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_outputs_that_nobody_takes_are_freed():
    layers, x = layers_of(64, 64), tensor(16384, 6)  # outputs of 4 MB
    assert kept_without_backward(lambda: projections(x, *layers)) < 1
