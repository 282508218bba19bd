"""The heads at given positions: padding on the left, gaps, shifts."""

import numpy as np
import paddle
import pytest

from paddle_rope import EfficientGlobalPointer, GlobalPointer, reference
from paddle_rope.global_pointer import MASKED_LOGIT

REFERENCES = {GlobalPointer: reference.global_pointer, EfficientGlobalPointer: reference.efficient_global_pointer}
both_heads = pytest.mark.parametrize("head", REFERENCES)
with_and_without_rope = pytest.mark.parametrize("use_rope", [False, True], ids=["no position", "rope"])
both_dtypes = pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])


def random_head(head, types, head_size, use_rope=True, dtype="float64"):
    layer = head(5, types, head_size, use_rope)
    layer.to(dtype=dtype)
    for parameter in layer.parameters():  # biases too
        parameter.set_value(paddle.to_tensor(np.random.standard_normal(parameter.shape), dtype=dtype))
    return layer


def random_hidden(*shape, dtype="float64"):
    hidden = paddle.to_tensor(np.random.standard_normal(shape), dtype=dtype)
    hidden.stop_gradient = False
    return hidden


@pytest.mark.equation("6.4")
@both_heads
@with_and_without_rope
@both_dtypes
def test_a_batch_padded_on_the_left_gives_the_scores_and_gradients_of_each_text_alone(head, use_rope, dtype, tolerance):
    lengths, seq = [7, 1, 4], 7
    layer = random_head(head, 3, 4, use_rope, dtype)
    texts = [random_hidden(1, length, 5, dtype=dtype) for length in lengths]
    padding = [random_hidden(1, seq - length, 5, dtype=dtype) for length in lengths]
    batch = paddle.concat([t if t.shape[1] == seq else paddle.concat([p, t], 1) for p, t in zip(padding, texts)])
    mask = np.arange(seq) >= seq - np.array(lengths)[:, np.newaxis]
    positions = paddle.to_tensor(np.maximum(np.cumsum(mask, axis=1) - 1, 0))  # 0, 0, 0, 1, 2, ...
    logits = layer(batch, paddle.to_tensor(mask), positions)
    assert (logits.numpy()[2][:, ~mask[2]] == MASKED_LOGIT).all()

    together = together_of_texts = 0
    for row, (text, length) in enumerate(zip(texts, lengths)):
        alone = layer(text)
        padded = logits[row, :, seq - length :, seq - length :]
        np.testing.assert_allclose(padded.numpy(), alone[0].numpy(), rtol=tolerance, atol=tolerance)
        weights = paddle.to_tensor(np.random.standard_normal(alone[0].shape), dtype=dtype)
        together += (padded * weights).sum()
        together_of_texts += (alone[0] * weights).sum()
    wanted = [*texts, *layer.parameters()]
    for ours, expected in zip(paddle.grad(together, wanted, retain_graph=True), paddle.grad(together_of_texts, wanted)):
        np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=10 * tolerance, atol=10 * tolerance)
    for gradient in paddle.grad(logits.sum(), [p for p in padding if p.shape[1]], allow_unused=True):
        assert gradient is None or float(gradient.abs().max()) == 0


@pytest.mark.equation("6.4")
@both_heads
@both_dtypes
def test_tokens_taken_out_of_a_text_score_as_in_it_when_they_keep_their_positions(head, dtype, tolerance):
    layer, exact_layer = random_head(head, 2, 6, dtype=dtype), random_head(head, 2, 6)
    for parameter, exact_parameter in zip(layer.parameters(), exact_layer.parameters()):
        parameter.set_value(exact_parameter.astype(dtype))
    exact = random_hidden(2, 9, 5)
    expected = REFERENCES[head](exact_layer, exact).numpy()
    kept = np.array([[0, 1, 4, 8], [2, 3, 6, 7]])  # of each text its own
    hidden = paddle.to_tensor(np.stack([exact.numpy()[row, kept[row]] for row in range(2)]), dtype=dtype)
    logits = layer(hidden, positions=paddle.to_tensor(kept)).numpy()
    for row in range(2):
        in_text = expected[row][:, kept[row][:, np.newaxis], kept[row]]
        np.testing.assert_allclose(logits[row], in_text, rtol=tolerance, atol=tolerance)


@pytest.mark.equation("6.4")
@both_heads
def test_gradients_at_given_positions_equal_the_reference(head):
    layer = random_head(head, 2, 4)
    text = random_hidden(1, 6, 5)
    kept = [1, 2, 5]
    towards = paddle.to_tensor(np.random.standard_normal((1, 2, 3, 3)))
    logits = layer(paddle.concat([text[:, i : i + 1] for i in kept], axis=1), positions=paddle.to_tensor([kept]))
    full = REFERENCES[head](layer, text)
    expected = paddle.stack([paddle.stack([full[:, :, i, j] for j in kept], -1) for i in kept], -2)
    wanted = [text, *layer.parameters()]
    gradients = paddle.grad((logits * towards).sum(), wanted)
    expected_gradients = paddle.grad((expected * towards).sum(), wanted)
    for gradient, expected_gradient in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=1e-11)


@pytest.mark.equation("6.4")
@both_heads
@pytest.mark.parametrize("batch", [1, 3])
def test_counting_from_0_is_the_default(head, batch):
    layer = random_head(head, 2, 4)
    hidden = random_hidden(batch, 5, 5)
    expected = layer(hidden).numpy()
    counted = paddle.arange(5)
    for positions in (counted, counted.unsqueeze(0), counted.unsqueeze(0).expand([batch, 5])):
        np.testing.assert_allclose(layer(hidden, positions=positions).numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.equation("6.4")
@both_heads
@pytest.mark.parametrize("shift", [-7, 0.5, 1000])
def test_a_shift_of_all_positions_of_a_text_changes_nothing(head, shift):
    layer = random_head(head, 3, 6)
    hidden = random_hidden(2, 5, 5)
    positions = paddle.to_tensor(np.array([[0.0, 1, 2, 3, 4], [0, 3, 4, 9, 11]]))
    by_row = paddle.to_tensor(np.array([[0.0], [shift]]))
    expected = layer(hidden, positions=positions).numpy()
    np.testing.assert_allclose(layer(hidden, positions=positions + by_row).numpy(), expected, rtol=0, atol=1e-10)


@pytest.mark.equation("6.4")
@both_heads
def test_positions_matter_with_rope_and_not_without(head):
    hidden = random_hidden(2, 5, 5)
    positions = paddle.to_tensor(np.array([[0, 1, 2, 3, 4], [0, 2, 4, 6, 8]]))
    above = np.triu_indices(5, 1)
    layer = random_head(head, 2, 4, use_rope=True)
    change = np.abs(layer(hidden, positions=positions).numpy() - layer(hidden).numpy())[:, :, above[0], above[1]]
    assert change[0].max() < 1e-12
    assert change[1].min() > 1e-6
    layer = random_head(head, 2, 4, use_rope=False)
    np.testing.assert_array_equal(layer(hidden, positions=positions).numpy(), layer(hidden).numpy())


@both_heads
@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 5), (2, 1, 5)], ids=str)
def test_positions_of_another_shape_are_an_error(head, shape):
    with pytest.raises(ValueError, match="positions"):
        random_head(head, 2, 4)(random_hidden(2, 5, 5), positions=paddle.zeros(shape, dtype="int64"))
