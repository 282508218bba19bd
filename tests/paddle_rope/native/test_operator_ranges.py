"""Native operators over their whole range: exact activations, long texts, neighbors in memory, scores of any size."""

import numpy as np
import paddle
from scipy.special import erf

from paddle_rope import EfficientGlobalPointer
from paddle_rope.convolution import depthwise_convolution
from paddle_rope.layers import linear
from paddle_rope.native.dispatch import plain_forms
from tests.helpers.comparison import assert_same, is_native, random_tensor
from tests.paddle_rope.native.operators import SPANS, span_loss


def test_gelu_is_exact_over_its_whole_range():
    x = np.concatenate([np.linspace(-12, 12, 4801), [-100.0, -1e4, 100.0, 1e4]]).astype("float32")
    rows = paddle.to_tensor(x[:, np.newaxis], stop_gradient=False)
    y = linear(rows, paddle.ones([1, 1]), None, "gelu")
    assert is_native(y)
    y.sum().backward()
    wide = x.astype("float64")
    distribution = (1 + erf(wide / np.sqrt(2))) / 2
    np.testing.assert_allclose(y.numpy()[:, 0], wide * distribution, rtol=2e-6, atol=4e-7)
    density = np.exp(-(wide**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(rows.grad.numpy()[:, 0], distribution + wide * density, rtol=2e-6, atol=4e-7)


def test_a_convolution_does_not_see_neighbors_in_memory_of_other_texts():
    x, weight = random_tensor(4, 3, 5, dtype="float32"), random_tensor(5, 5, dtype="float32")
    alone = paddle.concat([depthwise_convolution(x[text : text + 1], weight) for text in range(4)])
    np.testing.assert_array_equal(depthwise_convolution(x, weight).numpy(), alone.numpy())


def test_masked_tokens_anywhere_bound_no_span_however_large_their_scores():
    projections = np.zeros([1, 5, 6], dtype="float32")
    projections[..., 4], projections[..., 5] = 2.0**23, -(2.0**23)  # halved, and their sum is 0
    projections = paddle.to_tensor(projections, stop_gradient=False)
    mask, operator = paddle.to_tensor([[False, True, True, False, True]]), span_loss(5, (4, 2), np.full([1, 1, 3], -1))
    loss = operator(projections, mask)
    np.testing.assert_allclose(loss.numpy(), [[np.log(1 + 6)]], rtol=1e-6)  # 6 pairs of tokens 1, 2 and 4
    loss.sum().backward()
    pairs = np.array([[0, 3, 2, 0, 1], [0, 1, 2, 0, 3]]).T  # that start with a token, that end with it
    np.testing.assert_allclose(projections.grad.numpy()[0, :, 4:], 0.5 / 7 * pairs, rtol=1e-5)
    np.testing.assert_array_equal(operator(projections, paddle.zeros([1, 5], "bool")).numpy(), [[0]])


def test_a_head_computes_its_loss_by_the_operator_at_any_positions():
    head, hidden = EfficientGlobalPointer(6, 3, 8), random_tensor(2, 9, 6, dtype="float32")
    positions = paddle.to_tensor(np.cumsum(np.random.randint(1, 5, [2, 9]), axis=1))
    mask = paddle.to_tensor(np.arange(9) < np.array([[9], [5]]))
    found = head.loss(hidden, paddle.to_tensor(SPANS), mask, positions)
    with plain_forms():
        expected = head.loss(hidden, paddle.to_tensor(SPANS), mask, positions)
    assert is_native(found) and not is_native(expected)
    assert_same(found, expected, [hidden, *head.parameters()], atol=2e-5)
