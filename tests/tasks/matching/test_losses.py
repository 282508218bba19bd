"""The losses equal their definitions, with gradients, in float64."""

import math

import numpy as np
import paddle
import pytest

from tasks.matching.losses import cosent_loss, grade_loss, ranking_loss

STEP = 1e-6


def slow_cosent(cosines, labels, scale):
    total = 1.0
    for cos_i, label_i in zip(cosines, labels):
        for cos_j, label_j in zip(cosines, labels):
            if label_i > label_j:
                total += math.exp(scale * (cos_j - cos_i))
    return math.log(total)


def slow_ranking(first, second, first_is_closer):
    losses = []
    for one, other, is_closer in zip(first, second, first_is_closer):
        closer, farther = (one, other) if is_closer else (other, one)
        losses.append(math.log(1 + math.exp(farther - closer)))
    return sum(losses) / len(losses)


def slow_grade(logits, shares):
    probabilities = [1 / (1 + math.exp(-logit)) for logit in logits]
    return -sum(y * math.log(p) + (1 - y) * math.log(1 - p) for p, y in zip(probabilities, shares)) / len(shares)


def slow_gradient(loss, values):
    """Central differences."""
    gradient = []
    for index in range(len(values)):
        sides = []
        for step in (STEP, -STEP):
            moved = np.array(values)
            moved[index] += step
            sides.append(loss(moved))
        gradient.append((sides[0] - sides[1]) / (2 * STEP))
    return gradient


def value_and_gradient(loss, values, dtype="float64"):
    tensor = paddle.to_tensor(np.asarray(values), dtype=dtype, stop_gradient=False)
    result = loss(tensor)
    result.backward()
    return float(result), tensor.grad.numpy()


@pytest.mark.parametrize("labels", [[1, 0, 0, 1, 0, 1], [3.5, 0, 5, 2.25, 3.5, 1], [0, 0, 0, 1, 0, 0]], ids=str)
@pytest.mark.parametrize("scale", [20.0, 3.0])
def test_cosent_is_its_definition(labels, scale):
    cosines = np.random.uniform(-1, 1, len(labels))
    value, gradient = value_and_gradient(lambda x: cosent_loss(x, paddle.to_tensor(labels), scale), cosines)
    assert value == pytest.approx(slow_cosent(cosines, labels, scale), rel=1e-12)
    expected = slow_gradient(lambda x: slow_cosent(x, labels, scale), cosines)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    assert np.abs(gradient).max() > 1e-2


def test_cosent_of_equal_labels_is_zero_without_gradient():
    value, gradient = value_and_gradient(lambda x: cosent_loss(x, paddle.ones([3])), [0.1, 0.9, -0.3], "float32")
    assert value == 0
    assert (gradient == 0).all()


def test_cosent_heeds_the_order_of_labels_alone():
    cosines = paddle.to_tensor([0.3, -0.2, 0.8, 0.1])
    losses = [float(cosent_loss(cosines, paddle.to_tensor(labels))) for labels in ([0, 1, 2, 1], [-7.0, 0.5, 99, 0.5])]
    assert losses[0] == losses[1] > 0


def test_cosent_is_finite_and_linear_for_the_widest_cosines():
    labels = paddle.to_tensor([1.0, 0.0])
    assert float(cosent_loss(paddle.to_tensor([-1.0, 1.0]), labels, scale=1e4)) == pytest.approx(2e4)
    assert float(cosent_loss(paddle.to_tensor([1.0, -1.0]), labels, scale=1e4)) == 0
    half = cosent_loss(paddle.to_tensor([-1.0, 1.0]).astype("float16"), labels)
    assert half.dtype == paddle.float32 and float(half) == pytest.approx(40)


def test_pairs_without_an_order_count_for_nothing_beside_the_smallest_terms():
    labels, cosines = paddle.to_tensor([1.0, 0.0]), paddle.to_tensor([1.0, -1.0], dtype="float64")
    assert float(cosent_loss(cosines, labels, scale=10.0)) == pytest.approx(math.exp(-20), rel=0, abs=1e-15)


def test_ranking_loss_is_its_definition():
    first, second, is_closer = np.random.randn(6) * 3, np.random.randn(6) * 3, [1, 0, 0, 1, 1, 0]
    label = paddle.to_tensor(is_closer)
    value, gradient = value_and_gradient(lambda x: ranking_loss(x, paddle.to_tensor(second), label), first)
    assert value == pytest.approx(slow_ranking(first, second, is_closer), rel=1e-12)
    expected = slow_gradient(lambda x: slow_ranking(x, second, is_closer), first)
    np.testing.assert_allclose(gradient, expected, atol=1e-8)
    _, of_second = value_and_gradient(lambda x: ranking_loss(paddle.to_tensor(first), x, label), second)
    np.testing.assert_allclose(of_second, -gradient, atol=1e-12)
    assert np.abs(gradient).max() > 1e-2


def test_ranking_loss_exchanged_is_the_same():
    first, second, label = paddle.randn([5]), paddle.randn([5]), paddle.to_tensor([1.0, 0, 1, 1, 0])
    assert float(ranking_loss(first, second, label)) == float(ranking_loss(second, first, 1 - label))


@pytest.mark.parametrize("shares", [[0, 1, 1, 0, 1], [0.2, 0.75, 1, 0, 0.5]], ids=str)
def test_grade_loss_is_its_definition(shares):
    logits = np.random.randn(5) * 2
    value, gradient = value_and_gradient(lambda x: grade_loss(x, paddle.to_tensor(np.array(shares, float))), logits)
    assert value == pytest.approx(slow_grade(logits, shares), rel=1e-12)
    np.testing.assert_allclose(gradient, slow_gradient(lambda x: slow_grade(x, shares), logits), atol=1e-8)


def test_losses_of_large_scores_are_finite():
    scores, labels = paddle.to_tensor([1e4, -1e4]), paddle.to_tensor([0.0, 1.0])
    assert float(ranking_loss(scores, -scores, labels)) == pytest.approx(2e4)
    assert float(grade_loss(scores, labels)) == pytest.approx(1e4)
