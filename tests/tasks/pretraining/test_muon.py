"""Muon beside its equations in numpy, and beside AdamW for what it leaves to it."""

import numpy as np
import paddle
import pytest

from paddle_rope.native.adamw import AdamW
from paddle_rope.tasks.pretraining.muon import COEFFICIENTS, Muon, orthogonalized


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_orthogonalized_keeps_singular_vectors_and_maps_singular_values_near_one(shape):
    matrix = np.random.default_rng(1).normal(size=shape).astype("float32")
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / np.sqrt((values**2).sum())
    for _ in range(5):
        values = COEFFICIENTS[0] * values + COEFFICIENTS[1] * values**3 + COEFFICIENTS[2] * values**5
    found = orthogonalized(paddle.to_tensor(matrix)).numpy()
    np.testing.assert_allclose(found, left * values @ right, atol=1e-4)
    assert values.min() > 0.6 and values.max() < 1.3


def test_matrices_move_by_the_equations_and_the_rest_as_with_adamw():
    start = [np.random.default_rng(n).normal(size=shape).astype("float32") for n, shape in enumerate([(4, 3), (3,)])]
    gradients = np.random.default_rng(7).normal(size=(3, 4, 3)).astype("float32")
    options = {"learning_rate": 0.1, "weight_decay": 0.5}

    def trained(make):
        weights = [paddle.create_parameter(a.shape, "float32", default_initializer=assigned(a)) for a in start]
        optimizer = make(weights)
        for gradient in gradients:
            ((weights[0] * paddle.to_tensor(gradient)).sum() + (weights[1] ** 2).sum()).backward()
            optimizer.step()
            optimizer.clear_grad()
        return [weight.numpy() for weight in weights]

    matrix, vector = trained(lambda w: Muon(parameters=w, matrices=[w[0].name], **options))
    _, vector_of_adamw = trained(lambda w: AdamW(parameters=w, **options))
    np.testing.assert_array_equal(vector, vector_of_adamw)

    expected, momentum = start[0].astype("float64"), np.zeros([4, 3])
    for gradient in gradients:
        momentum = 0.95 * momentum + gradient
        update = orthogonalized(paddle.to_tensor((gradient + 0.95 * momentum).astype("float32"))).numpy()
        expected = (1 - 0.1 * 0.5) * expected - 0.1 * 0.2 * np.sqrt(4) * update
    np.testing.assert_allclose(matrix, expected, atol=1e-5)


def assigned(array):
    return paddle.nn.initializer.Assign(array)
