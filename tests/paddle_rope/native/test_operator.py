"""What holds for each operator: views, a second backward pass, changes between forward and backward."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding
from paddle_rope.native.attention import native_linear_attention, native_softmax_attention
from paddle_rope.native.convolution import native_convolution
from paddle_rope.native.linear import native_linear
from paddle_rope.native.residual_norm import native_dropout, native_residual_norm
from paddle_rope.native.span_loss import native_span_loss
from tests.paddle_rope.native.comparison import outputs_and_gradients, tensor, views

# What Paddle makes of a RuntimeError of ours, and its own errors
ERRORS = (OSError, RuntimeError, SystemError)
ROWS, PLACES = np.array([0, 3]), np.array([[1, 2], [3, 4]])  # of two texts and types


def dropped(x):
    np.random.seed(3)
    return native_dropout(x, 0.5)


def rope(head_dim):
    return RotaryPositionEmbedding(head_dim).cos_sin(5)


def softmax(q, k, v, mask, segments):
    np.random.seed(3)
    return native_softmax_attention(q, k, v, rope(4), mask, 0.1, segments, False)


# name -> the function and the shapes of its arguments; "mask" and "segments" are no shapes
OPERATORS = {
    "linear": (native_linear, [(2, 5, 6), (6, 4), (4,)]),
    "linear with relu": (lambda x, w, b: native_linear(x, w, b, "relu"), [(7, 6), (6, 4), (4,)]),
    "linear with gelu": (lambda x, w, b: native_linear(x, w, b, "gelu"), [(2, 5, 6), (6, 4), (4,)]),
    "layer norm": (lambda r, x, w, b: native_residual_norm(r, x, w, b, 1e-6), [(2, 5, 6), (2, 5, 6), (6,), (6,)]),
    "RMS norm": (lambda x: native_residual_norm(None, x, None, None, 1e-6), [(2, 5, 6)]),
    "dropout": (dropped, [(2, 5, 6)]),
    "convolution": (native_convolution, [(2, 5, 6), (3, 6), "mask", "segments"]),
    "softmax attention": (softmax, [(2, 5, 2, 4), (2, 5, 2, 4), (2, 5, 2, 4), "mask", "segments"]),
    "linear attention": (
        lambda q, k, v, mask: native_linear_attention(q, k, v, rope(4), mask, "unrotated", False, None),
        [(2, 5, 2, 4), (2, 5, 2, 4), (2, 5, 2, 4), "mask"],
    ),
    "causal attention": (
        lambda q, k, v, mask: native_linear_attention(q, k, v, None, mask, "none", True, [0.9, 0.5]),
        [(2, 5, 2, 4), (2, 5, 2, 4), (2, 5, 2, 4), "mask"],
    ),
    "span loss": (
        lambda qk, scores, mask: native_span_loss(qk, scores, ROWS, PLACES, rope(4), mask),
        [(2, 5, 8), (2, 5, 4), "mask"],
    ),
}
MASK = np.array([[False, True, True, True, True], [True, True, False, True, True]])
SEGMENTS = np.array([[0, 0, 1, 1, 1], [4, 4, 4, 4, 2]])


def arguments_of(shapes):
    """New arguments, and those among them that have gradients."""
    given = {"mask": MASK, "segments": SEGMENTS}
    arguments = [paddle.to_tensor(given[of]) if isinstance(of, str) else tensor(*of) for of in shapes]
    return arguments, [one for one in arguments if not one.stop_gradient]


def as_view(x):
    """Equal numbers that stand apart in memory."""
    view = paddle.stack([x, paddle.zeros_like(x)], axis=-1)[..., 0]
    assert not view.is_contiguous()
    return view


@pytest.mark.parametrize("name", OPERATORS)
def test_views_are_read_as_they_stand(name):
    function, shapes = OPERATORS[name]
    arguments, inputs = arguments_of(shapes)
    towards = tensor(*reversed(function(*arguments).shape))

    def result(given):
        y = function(*given)
        return y.transpose(list(range(y.ndim))[::-1])  # the gradient of y is a view, too

    expected = outputs_and_gradients(lambda: result(arguments), inputs, towards)
    for place in range(len(arguments)):
        with views():
            given = [as_view(x) if i == place else x for i, x in enumerate(arguments)]
            found = outputs_and_gradients(lambda given=given: result(given), inputs, towards)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("retain_graph", [True, False], ids=["retained", "freed"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_second_backward_is_refused(name, retain_graph):
    function, shapes = OPERATORS[name]
    y = function(*arguments_of(shapes)[0])
    one, other = y.sum(), (2 * y).sum()
    one.backward(retain_graph=retain_graph)
    with pytest.raises(ERRORS, match="only once|backward twice"):  # of an operator, or of Paddle's own concat
        other.backward()


@pytest.mark.parametrize("name", OPERATORS)
def test_paddle_grad_may_be_repeated(name):
    function, shapes = OPERATORS[name]
    arguments, inputs = arguments_of(shapes)
    total = function(*arguments).sum()
    one, other = (paddle.grad(total, inputs, retain_graph=True) for _ in range(2))
    for first, second in zip(one, other):
        np.testing.assert_array_equal(first.numpy(), second.numpy())


@pytest.mark.parametrize("name", OPERATORS)
def test_a_change_in_place_before_backward_is_refused_or_does_not_matter(name):
    function, shapes = OPERATORS[name]
    arguments, inputs = arguments_of(shapes)
    towards = tensor(*function(*arguments).shape)
    expected = outputs_and_gradients(lambda: function(*arguments), inputs, towards)[1:]
    refused = 0
    for place in range(len(arguments) + 1):  # the last is the output
        given = [x.clone() if x.stop_gradient else x * 1 for x in arguments]
        output = function(*given)
        total = (output * towards).sum()
        changed = output if place == len(arguments) else given[place]
        with paddle.no_grad():
            if changed.dtype == paddle.bool:
                changed[0, 0] = True
            else:
                changed.add_(paddle.ones_like(changed))
        try:
            total.backward()
        except ERRORS as error:
            assert "in place" in str(error) or "inplace" in str(error)
            refused += 1
        else:
            for x, right in zip(inputs, expected):
                np.testing.assert_allclose(x.grad.numpy(), right, rtol=0, atol=1e-6)
        for x in inputs:
            x.clear_gradient(set_to_zero=False)
    assert refused >= (name not in ("dropout", "RMS norm", "layer norm"))  # which keep none of their inputs
