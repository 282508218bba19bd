"""Multi-head attention: where the heads are, and what goes to the kernel."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import MultiHeadAttention, RotaryPositionEmbedding, reference

KINDS = {
    "softmax": reference.softmax_attention,
    "linear": reference.linear_attention,
    "window": partial(reference.softmax_attention, window=2),
}


def random_layer(hidden_size, num_heads, kind, dropout=0.0):
    layer = MultiHeadAttention(hidden_size, num_heads, kind, dropout, window=2)
    for parameter in layer.parameters():  # biases too
        parameter.set_value(paddle.to_tensor(np.random.standard_normal(parameter.shape) / 2, dtype="float32"))
    return layer


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("num_heads", [1, 3])
def test_outputs_and_gradients_equal_one_reference_for_each_head(kind, num_heads):
    batch, seq, head_dim = 2, 5, 4
    hidden_size = num_heads * head_dim
    layer = random_layer(hidden_size, num_heads, kind)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=bool)
    hidden = paddle.to_tensor(np.random.standard_normal((batch, seq, hidden_size)), dtype="float32")
    exact = hidden.astype("float64")
    hidden.stop_gradient = exact.stop_gradient = False
    output = layer(hidden, RotaryPositionEmbedding(head_dim), paddle.to_tensor(mask))

    def projected(project, x):
        return paddle.matmul(x, project.weight.astype("float64")) + project.bias.astype("float64")

    heads = []
    for head in range(num_heads):
        columns = slice(head * head_dim, (head + 1) * head_dim)
        q, k, v = (
            projected(project, exact)[:, :, columns].unsqueeze(1) for project in (layer.query, layer.key, layer.value)
        )
        heads.append(KINDS[kind](q, k, v, range(seq), mask).squeeze(1))
    expected = projected(layer.output, paddle.concat(heads, axis=-1))
    np.testing.assert_allclose(output.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)

    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    names = ["hidden", *(name for name, _ in layer.named_parameters())]
    gradients = paddle.grad((output * towards.astype("float32")).sum(), [hidden, *layer.parameters()])
    expected_gradients = paddle.grad((expected * towards).sum(), [exact, *layer.parameters()])
    assert len(names) == 9
    for name, gradient, expected_gradient in zip(names, gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=1e-4, atol=5e-5, err_msg=name)


@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_without_rotation_a_permutation_of_the_tokens_permutes_the_outputs(kind):
    layer = random_layer(12, 2, kind)
    hidden = paddle.to_tensor(np.random.standard_normal((2, 7, 12)), dtype="float32")
    order = paddle.to_tensor([3, 0, 6, 1, 5, 2, 4])
    permuted = layer(paddle.index_select(hidden, order, axis=1))
    straight = paddle.index_select(layer(hidden), order, axis=1)
    np.testing.assert_allclose(permuted.numpy(), straight.numpy(), rtol=0, atol=1e-4)
    rotary = RotaryPositionEmbedding(6)
    rotated = layer(paddle.index_select(hidden, order, axis=1), rotary)
    assert float((rotated - paddle.index_select(layer(hidden, rotary), order, axis=1)).abs().max()) > 1e-2


def test_dropout_acts_on_softmax_weights_in_training_alone():
    hidden = paddle.to_tensor(np.random.standard_normal((1, 6, 8)), dtype="float32")
    layer = random_layer(8, 2, "softmax", dropout=0.5)
    assert float((layer(hidden) - layer(hidden)).abs().max()) > 0
    layer.eval()
    np.testing.assert_array_equal(layer(hidden).numpy(), layer(hidden).numpy())


@pytest.mark.parametrize("arguments", [(10, 3), (8, 2, "Softmax"), (8, 2, None)], ids=str)
def test_sizes_and_kinds_that_do_not_exist_are_an_error(arguments):
    with pytest.raises(ValueError, match="multiple|attention must be"):
        MultiHeadAttention(*arguments)


@pytest.mark.skipif(paddle.__version__.startswith("2."), reason="Paddle 2 multiplies no empty matrices")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_empty_batch_keeps_its_length(kind, causal):
    layer = MultiHeadAttention(8, 2, kind, window=2, causal=causal)
    for segment_ids in (None, paddle.zeros([0, 5], dtype="int64")):
        attended = layer(paddle.zeros([0, 5, 8]), RotaryPositionEmbedding(4), segment_ids=segment_ids)
        assert attended.shape == [0, 5, 8]
