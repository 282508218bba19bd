"""GlobalPointer and EfficientGlobalPointer against a loop over types, starts and ends."""

import numpy as np
import paddle
import pytest

from paddle_rope import EfficientGlobalPointer, GlobalPointer, decode_spans, reference
from paddle_rope.global_pointer import MASKED_LOGIT
from tests.helpers.pairwise import pairwise

HEADS = [
    pytest.param(GlobalPointer, reference.global_pointer, id="dense"),
    pytest.param(EfficientGlobalPointer, reference.efficient_global_pointer, id="efficient"),
]
both_heads = pytest.mark.parametrize("head, expected_logits", HEADS)
with_and_without_rope = pytest.mark.parametrize("use_rope", [False, True], ids=["no position", "rope"])


def random_head(head, hidden_size, num_types, head_size, use_rope, dtype="float32"):
    layer = head(hidden_size, num_types, head_size, use_rope)
    layer.to(dtype=dtype)
    for parameter in layer.parameters():  # biases too
        parameter.set_value(paddle.to_tensor(np.random.standard_normal(parameter.shape), dtype=dtype))
    return layer


def random_hidden(*shape, dtype="float32"):
    return paddle.to_tensor(np.random.standard_normal(shape), dtype=dtype)


@pytest.mark.equation("6.1", "6.2")
@pairwise(
    {
        "head, expected_logits": [head.values for head in HEADS],
        "use_rope": [False, True],
        "masked": [False, True],
        "sizes": [(1, 1, 3, 1, 2), (2, 5, 3, 3, 4)],
        "dtype, tolerance": [("float32", 1e-5), ("float64", 1e-10)],
    }
)
def test_logits_and_gradients_equal_the_reference(head, expected_logits, use_rope, dtype, tolerance, masked, sizes):
    batch, seq, hidden_size, num_types, head_size = sizes
    exact_layer = random_head(head, hidden_size, num_types, head_size, use_rope, "float64")
    layer = random_head(head, hidden_size, num_types, head_size, use_rope, dtype)
    for parameter, exact_parameter in zip(layer.parameters(), exact_layer.parameters()):
        parameter.set_value(exact_parameter.astype(dtype))
    exact = random_hidden(batch, seq, hidden_size, dtype="float64")
    hidden = exact.astype(dtype)
    hidden.stop_gradient = exact.stop_gradient = False
    mask = np.ones((batch, seq), dtype=bool)
    if masked:
        mask[:, 0] = False
        mask[-1, seq - 2 :] = False
    logits = layer(hidden, paddle.to_tensor(mask) if masked else None)
    expected = expected_logits(exact_layer, exact, mask if masked else None)
    assert logits.dtype == hidden.dtype
    assert logits.shape == [batch, num_types, seq, seq]
    np.testing.assert_allclose(logits.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)

    towards = random_hidden(*logits.shape, dtype="float64")
    gradients = paddle.grad((logits * towards.astype(dtype)).sum(), [hidden, *layer.parameters()])
    if not mask.any() and masked:
        assert all(float(gradient.abs().max()) == 0 for gradient in gradients)
        return
    names = ["hidden", *(name for name, _ in layer.named_parameters())]
    expected_gradients = paddle.grad((expected * towards).sum(), [exact, *exact_layer.parameters()])
    for name, gradient, expected_gradient in zip(names, gradients, expected_gradients):
        np.testing.assert_allclose(
            gradient.numpy(), expected_gradient.numpy(), rtol=tolerance, atol=10 * tolerance, err_msg=name
        )


@pytest.mark.equation("6.5")
@both_heads
@pytest.mark.parametrize("mask_dtype", ["bool", "int64", "float32"])
def test_what_is_no_span_holds_the_masked_logit(head, expected_logits, mask_dtype):
    mask = np.array([[0, 1, 1, 1, 1, 0], [0, 1, 1, 0, 0, 0]])
    layer = random_head(head, 5, 2, 4, True)
    logits = layer(random_hidden(2, 6, 5), paddle.to_tensor(mask).astype(mask_dtype)).numpy()
    is_span = mask[:, :, np.newaxis] * mask[:, np.newaxis, :] * np.triu(np.ones((6, 6))) > 0
    is_span = np.repeat(is_span[:, np.newaxis], 2, axis=1)
    assert (logits[~is_span] == MASKED_LOGIT).all()
    assert (np.abs(logits[is_span]) < 1000).all()
    unmasked = layer(random_hidden(1, 6, 5)).numpy()
    assert (unmasked[:, :, np.tril_indices(6, -1)[0], np.tril_indices(6, -1)[1]] == MASKED_LOGIT).all()


@pytest.mark.equation("6.5")
def test_the_masked_logit_is_finite_in_float16_and_its_exponential_is_zero():
    assert np.float16(MASKED_LOGIT) == MASKED_LOGIT
    assert np.exp(np.float32(MASKED_LOGIT)) == 0


@pytest.mark.equation("6.5")
@both_heads
def test_masked_pairs_and_padding_send_back_no_gradient(head, expected_logits):
    layer = random_head(head, 5, 2, 4, True)
    hidden = random_hidden(1, 6, 5)
    hidden.stop_gradient = False
    mask = np.array([[0, 1, 1, 0, 1, 0]], dtype=bool)
    (gradient,) = paddle.grad(layer(hidden, paddle.to_tensor(mask)).sum(), hidden)
    assert (gradient.numpy()[~mask] == 0).all()
    assert (gradient.numpy()[mask] != 0).all()


@pytest.mark.equation("6.3")
@both_heads
def test_without_rope_logits_do_not_depend_on_position(head, expected_logits):
    layer = random_head(head, 5, 3, 4, use_rope=False)
    hidden = random_hidden(2, 7, 5)
    order = np.array([2, 0, 5, 6, 1, 4, 3])
    logits = layer(hidden).numpy()
    permuted = layer(paddle.index_select(hidden, paddle.to_tensor(order), axis=1)).numpy()
    compared = [(i, j) for i in range(7) for j in range(i, 7) if order[i] <= order[j]]
    assert len(compared) > 12
    for i, j in compared:
        np.testing.assert_allclose(permuted[:, :, i, j], logits[:, :, order[i], order[j]], rtol=1e-5, atol=1e-5)


@pytest.mark.equation("6.3")
@both_heads
def test_with_rope_logits_depend_on_position(head, expected_logits):
    layer = random_head(head, 5, 3, 4, use_rope=True)
    logits = layer(random_hidden(1, 1, 5).expand([1, 7, 5])).numpy()
    assert np.abs(logits[:, :, 0, 1:] - logits[:, :, 0, :1]).min() > 1e-3


@pytest.mark.equation("6.3")
@both_heads
def test_with_equal_tokens_logits_depend_on_the_length_alone(head, expected_logits):
    layer = random_head(head, 5, 3, 6, use_rope=True)
    logits = layer(random_hidden(1, 1, 5).expand([1, 9, 5])).numpy()
    for length in range(9):
        diagonal = np.diagonal(logits, length, axis1=2, axis2=3)
        np.testing.assert_allclose(diagonal, diagonal[:, :, :1].repeat(9 - length, axis=2), rtol=1e-4, atol=1e-4)


@pytest.mark.equation("6.3")
@both_heads
@with_and_without_rope
def test_padding_on_the_left_shifts_the_logits(head, expected_logits, use_rope):
    layer = random_head(head, 5, 2, 4, use_rope)
    hidden = random_hidden(2, 6, 5)
    padded = paddle.concat([random_hidden(2, 11, 5), hidden], axis=1)
    shifted = layer(padded, paddle.to_tensor(np.arange(17) >= 11).unsqueeze(0).expand([2, 17])).numpy()
    np.testing.assert_allclose(shifted[:, :, 11:, 11:], layer(hidden).numpy(), rtol=1e-4, atol=1e-4)
    assert (shifted[:, :, :11] == MASKED_LOGIT).all()


@pytest.mark.equation("6.15")
@both_heads
def test_nested_entities_can_be_scored_and_decoded(head, expected_logits):
    # one type is found inside another: [0, 4) of type 0 holds [1, 3) and [1, 4) of type 1; one span has both types
    wanted = {(0, 4, 0), (1, 3, 1), (1, 4, 1), (5, 6, 0), (5, 6, 1)}
    seq = 6
    layer = random_head(head, seq, 2, 2 * seq, use_rope=False)
    hidden = paddle.eye(seq).unsqueeze(0)
    labels = np.zeros((1, 2, seq, seq), dtype=np.float32)
    for start, end, kind in wanted:
        labels[0, kind, start, end - 1] = 1
    sides = paddle.to_tensor(2 * labels - 1) * paddle.to_tensor(np.triu(np.ones((seq, seq), dtype=np.float32)))
    optimizer = paddle.optimizer.Adam(learning_rate=0.1, parameters=layer.parameters())
    for _ in range(150):
        paddle.nn.functional.relu(2 - layer(hidden) * sides).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    assert {span[:3] for span in decode_spans(layer(hidden))[0]} == wanted


@pytest.mark.equation("6.2")
@pytest.mark.parametrize("head, cost", [(GlobalPointer, 2 * (7 + 1) * 4), (EfficientGlobalPointer, 4 * 4 + 2)])
def test_a_further_type_costs_what_the_docstring_says(head, cost):
    sizes = [sum(int(np.prod(p.shape)) for p in head(7, types, 4).parameters()) for types in (2, 3)]
    assert sizes[1] - sizes[0] == cost


@both_heads
def test_an_odd_head_size_is_an_error_with_rope_only(head, expected_logits):
    with pytest.raises(ValueError, match="even"):
        head(4, 2, 5)
    assert head(4, 2, 5, use_rope=False)(random_hidden(1, 3, 4)).shape == [1, 2, 3, 3]
