"""The losses equal their definitions, with gradients, in float64."""

import math

import numpy as np
import paddle
import pytest

from tasks.matching.losses import cosent_loss, grade_loss, ranking_loss


def slow_cosent(cosines, labels, scale):
    pairs = [(i, j) for i in range(len(labels)) for j in range(len(labels)) if labels[i] > labels[j]]
    return math.log(1 + sum(math.exp(scale * (cosines[j] - cosines[i])) for i, j in pairs))


def slow_ranking(first, second, first_is_closer):
    pairs = [(a, b) if closer else (b, a) for a, b, closer in zip(first, second, first_is_closer)]
    return sum(math.log(1 + math.exp(farther - closer)) for closer, farther in pairs) / len(pairs)


def slow_grade(logits, shares):
    probabilities = [1 / (1 + math.exp(-logit)) for logit in logits]
    return -sum(y * math.log(p) + (1 - y) * math.log(1 - p) for p, y in zip(probabilities, shares)) / len(shares)


def slow_gradient(loss, values, step=1e-6):
    """Central differences."""
    moves = step * np.eye(len(values))
    return [(loss(values + move) - loss(values - move)) / (2 * step) for move in moves]


SECOND, CLOSER = np.array([0.4, -2.0, 1.5, 0.1, -0.6, 3.0]), [1, 0, 0, 1, 1, 0]
CASES = {  # loss and definition of scores
    **{
        f"cosent {labels} {scale}": (
            lambda x, labels=labels, scale=scale: cosent_loss(x, paddle.to_tensor(labels), scale),
            lambda x, labels=labels, scale=scale: slow_cosent(x, labels, scale),
        )
        for labels in ([1, 0, 1, 0, 0, 1], [5, 0, 3, 3, 1.5, 2], [0, 0, 0, 1, 0, 0])
        for scale in (20.0, 3.0)
    },
    "ranking, first": (
        lambda x: ranking_loss(x, paddle.to_tensor(SECOND), paddle.to_tensor(CLOSER)),
        lambda x: slow_ranking(x, SECOND, CLOSER),
    ),
    "ranking, second": (
        lambda x: ranking_loss(paddle.to_tensor(SECOND), x, paddle.to_tensor(CLOSER)),
        lambda x: slow_ranking(SECOND, x, CLOSER),
    ),
    **{
        f"grade {shares}": (
            lambda x, shares=shares: grade_loss(x, paddle.to_tensor(np.array(shares, float))),
            lambda x, shares=shares: slow_grade(x, shares),
        )
        for shares in ([0, 1, 1, 0, 1, 1], [0.2, 0.75, 1, 0, 0.5, 0.1])
    },
}


@pytest.mark.parametrize("name", CASES)
def test_loss_is_its_definition(name):
    loss, slow = CASES[name]
    scores = np.random.uniform(-1, 1, 6)
    tensor = paddle.to_tensor(scores, dtype="float64", stop_gradient=False)
    value = loss(tensor)
    value.backward()
    assert value.dtype == paddle.float64 and value.item() == pytest.approx(slow(scores), rel=1e-12)
    np.testing.assert_allclose(tensor.grad.numpy(), slow_gradient(slow, scores), atol=1e-6)
    assert np.abs(tensor.grad.numpy()).max() > 1e-2


def test_cosent_depends_on_the_order_of_labels_alone_and_is_zero_where_there_is_none():
    cosines = paddle.to_tensor([0.3, -0.2, 0.8, 0.1], stop_gradient=False)
    losses = [float(cosent_loss(cosines, paddle.to_tensor(labels))) for labels in ([0, 1, 2, 1], [-7.0, 0.5, 99, 0.5])]
    assert losses[0] == losses[1] > 0
    loss = cosent_loss(cosines, paddle.ones([4]))
    loss.backward()
    assert loss.item() == 0 and (cosines.grad.numpy() == 0).all()


def test_losses_of_extreme_scores_are_finite_and_small_terms_are_not_lost():
    labels, wrong = paddle.to_tensor([1.0, 0.0]), paddle.to_tensor([-1.0, 1.0])
    assert float(cosent_loss(wrong, labels, scale=1e4)) == pytest.approx(2e4)
    assert float(cosent_loss(-wrong, labels, scale=1e4)) == 0
    assert float(cosent_loss(-wrong.astype("float64"), labels, scale=10.0)) == pytest.approx(math.exp(-20), rel=1e-6)
    half = cosent_loss(wrong.astype("float16"), labels)
    assert half.dtype == paddle.float32 and float(half) == pytest.approx(40)
    assert float(ranking_loss(1e4 * wrong, -1e4 * wrong, labels)) == pytest.approx(2e4)
    assert float(grade_loss(1e4 * wrong, labels)) == pytest.approx(1e4)
