"""Heads of RoFormer: language models and classification."""

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest

from paddle_rope import RoFormerForCausalLM, RoFormerForMaskedLM, RoFormerForSequenceClassification
from paddle_rope.roformer.heads import pool
from tests.paddle_rope.roformer.small_models import make, random_ids


@pytest.mark.equation("5.3")
@pytest.mark.parametrize("options", [{}, {"version": 2}, {"version": 2, "embedding_size": 8}, {"embedding_size": 8}])
def test_logits_of_the_vocabulary_equal_their_equation(options):
    model = make(RoFormerForMaskedLM, **options)
    ids = random_ids(2, 6)
    x, table, head = model.roformer(ids), model.roformer.token_embedding.weight, dict(model.lm_head.named_parameters())
    if options.get("version") == 2:
        assert list(head) == ["dense.weight"] * ("embedding_size" in options)
        x = paddle.matmul(x, head["dense.weight"]) if head else x
        expected = paddle.matmul(x, table.t())
    else:
        x = F.gelu(paddle.matmul(x, head["dense.weight"]) + head["dense.bias"])
        expected = paddle.matmul(model.lm_head.norm(x), table.t()) + head["bias"]
    np.testing.assert_allclose(model(ids).numpy(), expected.numpy(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("model_class", [RoFormerForMaskedLM, RoFormerForCausalLM])
def test_the_loss_of_a_language_model_is_the_mean_over_labeled_tokens(model_class):
    model = make(model_class)
    ids, labels = random_ids(2, 6), np.full((2, 6), -100)
    labels[0, 1], labels[1, 4], labels[1, 0] = 3, 0, 22
    logits = model(ids).numpy()
    loss, chosen = model(ids, labels=paddle.to_tensor(labels))
    places = [(0, 1), (1, 0), (1, 4)]
    np.testing.assert_allclose(chosen.numpy(), [logits[place] for place in places], rtol=0, atol=1e-5)
    exact = [np.log(np.exp(logits[place]).sum()) - logits[place][labels[place]] for place in places]
    np.testing.assert_allclose(float(loss), np.mean(exact), rtol=1e-5)
    loss.backward()
    assert float(model.roformer.token_embedding.weight.grad.abs().max()) > 0
    with pytest.raises(ValueError, match="no token is labeled"):
        model(ids, labels=paddle.full([2, 6], -100))


def test_a_causal_language_model_sees_no_later_token():
    model = make(RoFormerForCausalLM, attention=["softmax", "linear"])
    ids = random_ids(1, 8)
    changed = ids.clone()
    changed[:, 5:] = 1 + (changed[:, 5:] % 22)
    np.testing.assert_array_equal(model(ids)[:, :5].numpy(), model(changed)[:, :5].numpy())
    assert float((model(ids)[:, 5:] - model(changed)[:, 5:]).abs().max()) > 1e-2


@pytest.mark.parametrize("pooling", ["first", "mean"])
@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_a_classifier_pools_real_tokens_and_drops_before_each_of_its_layers(pooling, activation):
    model = make(RoFormerForSequenceClassification, pooling=pooling, num_labels=4, classifier_activation=activation)
    ids, labels = random_ids(2, 6), paddle.to_tensor([3, 0])
    mask = paddle.to_tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    model.classifier.dropout.register_forward_post_hook(lambda layer, inputs, output: output * 2)
    loss, logits = model(ids, mask, labels=labels)
    hidden = model.roformer(ids[:1, :4])[0]
    pooled = 2 * (hidden[0] if pooling == "first" else hidden.mean(axis=0))
    weights = dict(model.classifier.named_parameters())
    inner = paddle.matmul(pooled.unsqueeze(0), weights["dense.weight"]) + weights["dense.bias"]
    inner = 2 * (paddle.tanh(inner) if activation == "tanh" else F.gelu(inner))
    expected = paddle.matmul(inner, weights["output.weight"]) + weights["output.bias"]
    np.testing.assert_allclose(logits[:1].numpy(), expected.numpy(), rtol=0, atol=2e-5)
    np.testing.assert_allclose(float(loss), float(F.cross_entropy(logits, labels)), rtol=1e-6)


def test_pooling_finds_the_first_token_under_left_padding():
    hidden = paddle.arange(12, dtype="float32").reshape([2, 3, 2])
    mask = paddle.to_tensor([[False, True, True], [True, True, False]])
    np.testing.assert_array_equal(pool(hidden, mask, "first").numpy(), [[2, 3], [6, 7]])
    np.testing.assert_array_equal(pool(hidden, mask, "mean").numpy(), [[3, 4], [7, 8]])
    np.testing.assert_array_equal(pool(hidden, None, "first").numpy(), [[0, 1], [6, 7]])
