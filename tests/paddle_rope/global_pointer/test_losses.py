"""Multi-label softmax cross-entropy against the direct sum of exponentials."""

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest

from paddle_rope import (
    multilabel_categorical_crossentropy,
    reference,
    sparse_multilabel_categorical_crossentropy,
)
from paddle_rope.global_pointer import MASKED_LOGIT


def random_logits(*shape, dtype="float64", scale=3.0):
    logits = paddle.to_tensor(scale * np.random.standard_normal(shape), dtype=dtype)
    logits.stop_gradient = False
    return logits


def gradient_of(loss, logits):
    return paddle.grad(loss.sum(), logits)[0]


@pytest.mark.equation("6.6")
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize("classes", [1, 2, 13])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0], ids=["no positives", "some", "all positives"])
def test_values_and_gradients_equal_the_reference(classes, share, dtype, tolerance):
    exact = random_logits(7, classes)
    logits = exact.detach().astype(dtype)
    logits.stop_gradient = False
    labels = np.random.uniform(size=(7, classes)) < share
    loss = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels))
    expected = reference.multilabel_categorical_crossentropy(exact, labels)
    assert loss.dtype == logits.dtype
    assert loss.shape == [7]
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
    gradient = gradient_of(loss, logits)
    np.testing.assert_allclose(gradient.numpy(), gradient_of(expected, exact).numpy(), rtol=0, atol=tolerance)


@pytest.mark.equation("6.6")
def test_the_gradient_equals_the_finite_difference():
    logits = random_logits(1, 6)
    labels = paddle.to_tensor([[True, False, False, True, False, False]])
    gradient = gradient_of(multilabel_categorical_crossentropy(logits, labels), logits).numpy()[0]
    for index in range(6):
        step = paddle.to_tensor(1e-6 * np.eye(6)[index : index + 1])
        up = multilabel_categorical_crossentropy(logits.detach() + step, labels)
        down = multilabel_categorical_crossentropy(logits.detach() - step, labels)
        assert abs((up - down).item() / 2e-6 - gradient[index]) < 1e-8


@pytest.mark.equation("6.6")
def test_one_class_is_two_sided_cross_entropy():
    logits = random_logits(9, 1)
    labels = np.arange(9)[:, np.newaxis] % 2 == 0
    loss = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels))
    expected = F.binary_cross_entropy_with_logits(logits, paddle.to_tensor(labels.astype(np.float64)), reduction="none")
    np.testing.assert_allclose(loss.numpy(), expected.numpy()[:, 0], rtol=0, atol=1e-10)


@pytest.mark.equation("6.8")
@pytest.mark.parametrize("size", [1e3, 1e4])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_finite_and_right_for_huge_scores(size, dtype):
    # negatives at +size or positives at -size cost size; what is on its right side costs nothing
    values = np.array([[size, -size, -size], [-size, size, size], [size, -size, size], [-size, -size, -size]])
    logits = paddle.to_tensor(values).astype(dtype)
    logits.stop_gradient = False
    labels = paddle.to_tensor([[0, 0, 0], [0, 1, 1], [0, 1, 1], [0, 0, 0]])
    loss = multilabel_categorical_crossentropy(logits, labels)
    np.testing.assert_allclose(loss.numpy(), [size, 0, 2 * size, 0], rtol=1e-5, atol=1e-6)
    gradient = gradient_of(loss, logits).astype("float32").numpy()
    np.testing.assert_allclose(gradient, [[1, 0, 0], [0, 0, 0], [1, -1, 0], [0, 0, 0]], rtol=1e-3, atol=1e-6)


@pytest.mark.equation("6.8")
@pytest.mark.parametrize("label", [False, True], ids=["no positives", "all positives"])
@pytest.mark.parametrize("size", [0.0, 1e3, -1e3, 1e4, -1e4])
def test_finite_when_all_classes_are_on_one_side(size, label):
    logits = paddle.full([2, 5], size)
    logits.stop_gradient = False
    loss = multilabel_categorical_crossentropy(logits, paddle.full([2, 5], label, dtype="bool"))
    wrong = -size if label else size
    expected = np.log(1 + 5 * np.exp(wrong)) if wrong <= 0 else wrong + np.log(5)
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-6, atol=1e-6)
    assert bool(paddle.isfinite(gradient_of(loss, logits)).all())


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "uint8"])
def test_labels_may_be_truth_values_or_zeros_and_ones(dtype):
    logits = random_logits(3, 8)
    labels = np.random.uniform(size=(3, 8)) < 0.4
    expected = reference.multilabel_categorical_crossentropy(logits, labels).numpy()
    loss = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels.astype(dtype)))
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-10)


def test_half_precision_scores_give_a_float32_loss():
    logits = random_logits(3, 8).detach().astype("float16")
    labels = np.random.uniform(size=(3, 8)) < 0.4
    loss = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels))
    assert loss.dtype == paddle.float32
    expected = reference.multilabel_categorical_crossentropy(logits.astype("float32").astype("float64"), labels)
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-5)


def test_the_loss_is_computed_outside_auto_cast(monkeypatch):
    # On CPU auto_cast does nothing, so its state is set by hand and read where exponentials are taken.
    tracer = paddle.base.framework._dygraph_tracer()
    outside, levels, exp = tracer._amp_level, [], paddle.exp
    monkeypatch.setattr(paddle, "exp", lambda x: (levels.append(tracer._amp_level), exp(x))[1])
    try:
        tracer._amp_level = paddle.base.core.AmpLevel.O2
        multilabel_categorical_crossentropy(random_logits(2, 3), paddle.zeros([2, 3]))
    finally:
        tracer._amp_level = outside
    assert set(levels) == {paddle.base.core.AmpLevel.O0}


@pytest.mark.equation("6.7")
def test_goes_to_zero_as_scores_separate():
    labels = paddle.to_tensor(np.random.uniform(size=(4, 9)) < 0.5)
    sides = labels.astype("float64") * 2 - 1
    losses = [float(multilabel_categorical_crossentropy(sides * by, labels).max()) for by in (-4, 0, 1, 4, 10, 40)]
    assert losses == sorted(losses, reverse=True)
    assert 0 <= losses[-1] < 1e-10


@pytest.mark.equation("6.7")
def test_the_gradient_pushes_positives_up_and_negatives_down():
    logits = random_logits(5, 7)
    labels = np.random.uniform(size=(5, 7)) < 0.5
    gradient = gradient_of(multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels)), logits).numpy()
    assert (gradient[labels] < 0).all()
    assert (gradient[~labels] > 0).all()


@pytest.mark.parametrize("score", [20.0, 700.0])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_what_is_excluded_counts_for_nothing_beside_the_smallest_terms(is_sparse, score):
    logits = paddle.to_tensor([[-score, score]], dtype="float64", stop_gradient=False)
    if is_sparse:
        loss = sparse_multilabel_categorical_crossentropy(logits, [[0, 1]])
    else:
        loss = multilabel_categorical_crossentropy(logits, paddle.to_tensor([[0, 1]]))
    np.testing.assert_allclose(loss.item(), 2 * np.log1p(np.exp(-score)), rtol=0, atol=1e-15)
    np.testing.assert_allclose(gradient_of(loss, logits).numpy(), [[np.exp(-score), -np.exp(-score)]], rtol=1e-8)


@pytest.mark.equation("6.9")
def test_masked_spans_cost_nothing():
    logits = random_logits(2, 6)
    labels = np.random.uniform(size=(2, 6)) < 0.5
    masked = paddle.full([2, 50], MASKED_LOGIT, dtype="float64")
    padded = paddle.concat([logits, masked], axis=1)
    padded_labels = paddle.to_tensor(np.concatenate([labels, np.zeros((2, 50), dtype=bool)], axis=1))
    expected = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels)).numpy()
    loss = multilabel_categorical_crossentropy(padded, padded_labels)
    np.testing.assert_allclose(loss.numpy(), expected, rtol=0, atol=1e-12)


def test_every_row_of_any_leading_axes_has_its_own_loss():
    logits = random_logits(2, 3, 5)
    labels = np.random.uniform(size=(2, 3, 5)) < 0.4
    loss = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels))
    expected = reference.multilabel_categorical_crossentropy(logits.reshape([6, 5]), labels.reshape(6, 5))
    assert loss.shape == [2, 3]
    np.testing.assert_allclose(loss.numpy().ravel(), expected.numpy(), rtol=1e-10)


@pytest.mark.parametrize("shape", [(2, 4), (3,), (1, 3), (2, 3, 1)], ids=str)
def test_labels_of_another_shape_are_an_error(shape):
    with pytest.raises(ValueError, match="same shape"):
        multilabel_categorical_crossentropy(random_logits(2, 3), paddle.zeros(shape))
