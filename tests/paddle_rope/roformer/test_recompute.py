"""Recomputation: the gradients are those without it."""

import numpy as np
import paddle
import pytest

from paddle_rope import RoFormerModel
from tests.paddle_rope.roformer.plain_model import FORMS, make, random_ids


@pytest.mark.equation("5.4")
@pytest.mark.parametrize(
    "form",
    [
        *("version 1", "version 2", "linear", "alibi", "shared", "window", "two-sided decay"),
        *("convolutions", "gate"),
    ],
)
def test_recompute_gives_the_same_gradients_with_dropout(form):
    model = make(RoFormerModel, **FORMS[form], hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
    model.train()
    ids, gradients, following = random_ids(2, 7), [], []
    mask = paddle.to_tensor(np.arange(7) < np.array([[7], [4]]))
    for enabled in (False, True):
        model.enable_recompute = enabled
        np.random.seed(5)
        paddle.seed(5)
        (model(ids, mask)[:, :4] ** 3).sum().backward()
        gradients.append({name: parameter.grad.numpy() for name, parameter in model.named_parameters()})
        following.append(np.random.random())
        model.clear_gradients()
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, rtol=1e-4, atol=1e-4, err_msg=name)
    assert following[0] == following[1], "recomputation leaves the random numbers after it alone"


@pytest.mark.parametrize("frozen", ["embeddings", "all but the last block"])
def test_recompute_trains_blocks_above_frozen_ones(frozen):
    model = make(RoFormerModel, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model.train()
    trained = model.blocks if frozen == "embeddings" else model.blocks[-1]
    names = {id(parameter) for parameter in trained.parameters()}
    for parameter in model.parameters():
        parameter.stop_gradient = id(parameter) not in names
    ids, gradients = random_ids(2, 7), []
    for model.enable_recompute in (False, True):
        (model(ids) ** 3).sum().backward()
        gradients.append({name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None})
        model.clear_gradients()
    assert len(gradients[0]) == len(names)
    assert gradients[1].keys() == gradients[0].keys()
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, rtol=1e-4, atol=1e-4, err_msg=name)


def test_recompute_trains_learned_frequencies():
    gradients = []
    model = make(RoFormerModel, rotary={"learned": True}, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model.train()
    ids = random_ids(2, 7)
    for enabled in (False, True):
        model.enable_recompute = enabled
        (model(ids, positions=paddle.arange(7).unsqueeze(0)) ** 3).sum().backward()
        gradients.append(model.rotary.theta.grad.numpy())
        model.clear_gradients()
    assert np.abs(gradients[0]).max() > 1e-3
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4, atol=1e-4)
