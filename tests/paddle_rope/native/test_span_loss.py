"""The loss of the efficient GlobalPointer against its plain form."""

import numpy as np
import paddle
import pytest

from paddle_rope import EfficientGlobalPointer
from paddle_rope.global_pointer.losses import sorted_spans
from paddle_rope.native.dispatch import plain_forms
from paddle_rope.native.span_loss import native_span_loss
from tests.paddle_rope.native.comparison import assert_same, tensor

TYPES = 3
# (type, first, last): one given twice, one of a single token, a pair with the same first token, padding
SPANS = [
    [[0, 1, 3], [0, 1, 3], [2, 4, 4], [0, 1, 2], [-1, -1, -1]],
    [[1, 0, 2], [1, 2, 3], [2, 0, 0], [-1, 0, 0], [-1, 0, 0]],
]


def head_and_hidden(seq, use_rope=True, max_span_length=None, scale=1.0):
    head = EfficientGlobalPointer(6, TYPES, 8, use_rope, max_span_length)
    for parameter in head.parameters():
        parameter.set_value(tensor(*parameter.shape))
    return head, tensor(2, seq, 6, scale=scale)


def assert_equal(head, hidden, spans, token_mask=None, positions=None, **options):
    def loss():
        return head.loss(hidden, spans, token_mask, positions)

    def plain():
        with plain_forms():
            return loss()

    projected = head._project(hidden)
    places = sorted_spans(spans, TYPES, hidden.shape[1], head.max_span_length)
    assert native_span_loss(*projected, *places) is not None
    assert_same(loss, plain, [hidden, *head.parameters()], **options)


@pytest.mark.parametrize("use_rope", [True, False], ids=["rope", "no rope"])
@pytest.mark.parametrize("max_span_length", [None, 4, 1000])
@pytest.mark.parametrize("seq", [5, 70, 150])  # less than a block, and more than one
def test_loss_and_gradients_equal_the_plain_form(seq, max_span_length, use_rope):
    head, hidden = head_and_hidden(seq, use_rope, max_span_length)
    assert_equal(head, hidden, paddle.to_tensor(SPANS))


def test_masked_tokens_bound_no_span_and_positions_turn():
    head, hidden = head_and_hidden(9)
    mask = np.ones([2, 9], dtype="bool")
    mask[0, 6:] = mask[1, 4:] = False
    positions = paddle.to_tensor(np.cumsum(np.random.randint(1, 5, [2, 9]), axis=1))
    assert_equal(head, hidden, paddle.to_tensor(SPANS), paddle.to_tensor(mask), positions)
    nothing = paddle.to_tensor(np.zeros([2, 9], dtype="bool"))
    none = paddle.full([2, 1, 3], -1, dtype="int64")
    np.testing.assert_array_equal(head.loss(hidden, none, nothing).numpy(), np.zeros([2, TYPES]))


def test_masked_tokens_anywhere_bound_no_span_however_large_their_scores():
    mask = np.array([[False, True, True, False, True]])
    type_scores = np.zeros([1, 5, 2], dtype="float32")
    type_scores[..., 0], type_scores[..., 1] = 2.0**23, -(2.0**23)  # halved, and their sum is 0
    none = np.zeros([0], "int64"), np.zeros([0, 2], "int64")
    inputs = paddle.zeros([1, 5, 4]), paddle.to_tensor(type_scores)
    inputs[1].stop_gradient = False
    loss = native_span_loss(*inputs, *none, token_mask=paddle.to_tensor(mask))
    np.testing.assert_allclose(loss.numpy(), [[np.log(1 + 6)]], rtol=1e-6)  # 6 pairs of tokens 1, 2 and 4
    loss.sum().backward()
    pairs = np.array([[0, 3, 2, 0, 1], [0, 1, 2, 0, 3]]).T  # that start with a token, that end with it
    np.testing.assert_allclose(inputs[1].grad.numpy()[0], 0.5 / 7 * pairs, rtol=1e-5)


def test_spans_beside_masked_tokens_equal_the_plain_form():
    head, hidden = head_and_hidden(9)
    mask = np.ones([2, 9], dtype="bool")
    mask[0, [0, 5, 8]] = mask[1, [1, 7]] = False
    spans = paddle.to_tensor([[[0, 1, 3], [2, 4, 4], [0, 1, 6]], [[1, 0, 2], [1, 2, 3], [2, 0, 8]]])
    assert_equal(head, hidden, spans, paddle.to_tensor(mask))


def test_texts_without_entities_and_scores_of_any_size():
    head, hidden = head_and_hidden(20)
    assert_equal(head, hidden, paddle.full([2, 1, 3], -1, dtype="int64"))
    head, hidden = head_and_hidden(20, scale=30)
    assert np.abs(head(hidden).numpy()[:, :, 0]).max() > 500
    assert_equal(head, hidden, paddle.to_tensor(SPANS))


def test_a_span_outside_the_text_is_refused():
    head, hidden = head_and_hidden(5)
    with pytest.raises(ValueError, match=r"\(1, 2, 5\) of text 1 is outside"):
        head.loss(hidden, paddle.to_tensor([[[0, 0, 0]], [[1, 2, 5]]]))


def test_frozen_projections_get_no_gradient():
    head, hidden = head_and_hidden(6)
    for parameter in head.type_scores.parameters():
        parameter.stop_gradient = True
    head.loss(hidden, paddle.to_tensor(SPANS)).sum().backward()
    assert head.type_scores.weight.grad is None and head.dense.weight.grad is not None
