"""The multi-label loss from lists of positives against the one from 0/1 labels and the direct sum of exponentials."""

import numpy as np
import paddle
import pytest

from paddle_rope import (
    EfficientGlobalPointer,
    GlobalPointer,
    multilabel_categorical_crossentropy,
    reference,
    sparse_multilabel_categorical_crossentropy,
)
from paddle_rope.global_pointer import MASKED_LOGIT
from tests.helpers.pairwise import pairwise

NONE = np.zeros((0, 2), dtype=np.int64)
TOLERANCES = [("float32", 1e-6), ("float64", 1e-12)]


def random_logits(*shape, dtype="float64", scale=3.0):
    logits = paddle.to_tensor(scale * np.random.standard_normal(shape), dtype=dtype)
    logits.stop_gradient = False
    return logits


def random_labels(rows, classes, share):
    labels = np.random.uniform(size=(rows, classes)) < share
    return labels, np.argwhere(labels)


def gradient_of(loss, logits):
    """Of a sum in which every row has a weight of its own."""
    weights = paddle.arange(1, loss.size + 1).astype(loss.dtype).reshape(loss.shape)
    return paddle.grad((loss * weights).sum(), logits)[0].numpy()


def loss_in_numpy(logits, labels):
    """Mean of the dense formula, float64, stable."""

    def log_of_one_plus_sum_of_exp(scores):
        largest = np.maximum(scores.max(axis=-1), 0)
        return largest + np.log(np.exp(-largest) + np.exp(scores - largest[:, np.newaxis]).sum(axis=-1))

    negatives = np.where(labels, -np.inf, logits)
    positives = np.where(labels, -logits, -np.inf)
    return (log_of_one_plus_sum_of_exp(negatives) + log_of_one_plus_sum_of_exp(positives)).mean()


@pytest.mark.equation("6.10")
@pairwise(
    {
        "rows, classes": [(1, 1), (7, 1), (1, 13), (7, 13), (5, 101)],
        "share": [0.0, 0.03, 0.4, 1.0],
        "dtype, tolerance": TOLERANCES,
    }
)
def test_values_and_gradients_equal_the_dense_form(rows, classes, share, dtype, tolerance):
    logits = random_logits(rows, classes, dtype=dtype)
    labels, positives = random_labels(rows, classes, share)
    loss = sparse_multilabel_categorical_crossentropy(logits, paddle.to_tensor(positives))
    expected = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels))
    assert loss.dtype == expected.dtype
    assert loss.shape == expected.shape
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
    gradient, expected_gradient = gradient_of(loss, logits), gradient_of(expected, logits)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0], ids=["no positives", "some", "all positives"])
def test_values_and_gradients_equal_the_reference(share):
    logits = random_logits(4, 11)
    labels, positives = random_labels(4, 11, share)
    loss = sparse_multilabel_categorical_crossentropy(logits, positives)
    expected = reference.multilabel_categorical_crossentropy(logits, labels)
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient_of(loss, logits), gradient_of(expected, logits), rtol=0, atol=1e-12)


@pytest.mark.equation("6.10")
def test_the_gradient_equals_the_finite_difference():
    logits = random_logits(2, 5)
    positives = [[0, 0], [0, 3], [1, 1]]
    gradient = gradient_of(sparse_multilabel_categorical_crossentropy(logits, positives), logits)
    for row in range(2):
        for index in range(5):
            step = np.zeros((2, 5))
            step[row, index] = 1e-6
            step = paddle.to_tensor(step)
            up = sparse_multilabel_categorical_crossentropy(logits.detach() + step, positives)
            down = sparse_multilabel_categorical_crossentropy(logits.detach() - step, positives)
            slope = (up - down).numpy()[row] / 2e-6 * (row + 1)
            assert abs(slope - gradient[row, index]) < 1e-8


@pytest.mark.equation("6.11")
@pytest.mark.parametrize("above", [10.0, 25.0, 100.0, 1000.0])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
def test_negatives_keep_value_and_gradient_beside_dominating_positives(above, dtype, tolerance):
    # log(sum over all - sum over positives) would be log(0), or log of rounding errors
    negatives = np.array([-2.0, 1.5, 0.25])
    logits = paddle.to_tensor(np.concatenate([[above, above - 1, above / 2], negatives])[np.newaxis], dtype=dtype)
    logits.stop_gradient = False
    loss = sparse_multilabel_categorical_crossentropy(logits, [[0, 0], [0, 1], [0, 2]])
    exponentials = np.exp(negatives)
    positives = np.exp(-np.array([above, above - 1, above / 2])).sum()
    expected = np.log1p(exponentials.sum()) + np.log1p(positives)
    np.testing.assert_allclose(loss.numpy(), [expected], rtol=tolerance)
    expected_gradient = exponentials / (1 + exponentials.sum())
    np.testing.assert_allclose(gradient_of(loss, logits)[0, 3:], expected_gradient, rtol=tolerance)


@pytest.mark.parametrize("size", [1e3, 1e4])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_finite_and_right_for_huge_scores(size, dtype):
    # negatives at +size or positives at -size cost size; what is on its right side costs nothing
    values = np.array([[size, -size, -size], [-size, size, size], [size, -size, size], [-size, -size, -size]])
    logits = paddle.to_tensor(values).astype(dtype)
    logits.stop_gradient = False
    loss = sparse_multilabel_categorical_crossentropy(logits, [[1, 1], [1, 2], [2, 1], [2, 2]])
    np.testing.assert_allclose(loss.numpy(), [size, 0, 2 * size, 0], rtol=1e-5, atol=1e-6)
    gradient = paddle.grad(loss.sum(), logits)[0].astype("float32").numpy()
    np.testing.assert_allclose(gradient, [[1, 0, 0], [0, 0, 0], [1, -1, 0], [0, 0, 0]], rtol=1e-3, atol=1e-6)


@pytest.mark.equation("6.11")
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["no positives", "some", "all positives"])
@pytest.mark.parametrize("dtype, tolerance", TOLERANCES)
def test_scores_up_to_a_thousand_equal_the_dense_form(share, dtype, tolerance):
    logits = random_logits(6, 17, dtype=dtype, scale=1000.0)
    labels, positives = random_labels(6, 17, share)
    loss = sparse_multilabel_categorical_crossentropy(logits, positives)
    expected = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels))
    assert np.isfinite(loss.numpy()).all()
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
    gradient = gradient_of(loss, logits)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient, gradient_of(expected, logits), rtol=tolerance, atol=tolerance)


@pytest.mark.equation("6.13")
@pytest.mark.parametrize("positives", [NONE, [[-1, -1]], [[-1, -1]] * 3], ids=["empty", "one padding", "padding"])
@pytest.mark.parametrize("as_tensor", [False, True], ids=["array", "tensor"])
def test_without_positives_only_the_negatives_count(positives, as_tensor):
    logits = random_logits(3, 5)
    loss = sparse_multilabel_categorical_crossentropy(logits, paddle.to_tensor(positives) if as_tensor else positives)
    expected = np.log1p(np.exp(logits.numpy()).sum(axis=1))
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-12)
    assert (gradient_of(loss, logits) > 0).all()


@pytest.mark.equation("6.13")
def test_rows_without_positives_are_untouched_by_those_of_other_rows():
    logits = random_logits(5, 7)
    loss = sparse_multilabel_categorical_crossentropy(logits, [[3, 6], [1, 0], [3, 2]]).numpy()
    expected = np.log1p(np.exp(logits.numpy()).sum(axis=1))
    np.testing.assert_allclose(loss[[0, 2, 4]], expected[[0, 2, 4]], rtol=1e-12)
    assert (np.abs(loss[[1, 3]] - expected[[1, 3]]) > 1e-3).all()


def test_order_repetition_and_padding_change_nothing():
    logits = random_logits(4, 9)
    _, positives = random_labels(4, 9, 0.4)
    loss = sparse_multilabel_categorical_crossentropy(logits, positives)
    shuffled = np.random.permutation(np.concatenate([positives, positives[::2], [[-1, -1], [-1, 3]]]))
    again = sparse_multilabel_categorical_crossentropy(logits, shuffled)
    np.testing.assert_array_equal(again.numpy(), loss.numpy())
    np.testing.assert_array_equal(gradient_of(again, logits), gradient_of(loss, logits))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("convert", [np.asarray, paddle.to_tensor, np.ndarray.tolist], ids=["array", "tensor", "list"])
def test_positives_may_be_arrays_tensors_and_lists_of_integers(dtype, convert):
    logits = random_logits(3, 8)
    labels, positives = random_labels(3, 8, 0.4)
    expected = reference.multilabel_categorical_crossentropy(logits, labels).numpy()
    loss = sparse_multilabel_categorical_crossentropy(logits, convert(positives.astype(dtype)))
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-12)


@pytest.mark.equation("6.10")
@pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 3, 5), (2, 1, 3, 5)], ids=str)
def test_rows_number_the_leading_axes(shape):
    logits = random_logits(*shape)
    labels = np.random.uniform(size=shape) < 0.4
    positives = np.argwhere(labels.reshape(-1, 5))
    loss = sparse_multilabel_categorical_crossentropy(logits, positives)
    expected = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels))
    assert list(loss.shape) == list(shape[:-1])
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-12)
    np.testing.assert_allclose(gradient_of(loss, logits), gradient_of(expected, logits), rtol=0, atol=1e-12)


def test_half_precision_scores_give_a_float32_loss():
    logits = random_logits(3, 8).detach().astype("float16")
    labels, positives = random_labels(3, 8, 0.4)
    loss = sparse_multilabel_categorical_crossentropy(logits, positives)
    assert loss.dtype == paddle.float32
    expected = reference.multilabel_categorical_crossentropy(logits.astype("float32").astype("float64"), labels)
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-5)


@pytest.mark.parametrize("positives", [NONE, np.array([[0, 1]])], ids=["no positives", "a positive"])
def test_the_loss_is_computed_outside_auto_cast(monkeypatch, positives):
    # On CPU auto_cast does nothing, so its state is set by hand and read where exponentials are taken.
    tracer = paddle.base.framework._dygraph_tracer()
    outside, levels, exp = tracer._amp_level, [], paddle.exp
    monkeypatch.setattr(paddle, "exp", lambda x: (levels.append(tracer._amp_level), exp(x))[1])
    try:
        tracer._amp_level = paddle.base.core.AmpLevel.O2
        sparse_multilabel_categorical_crossentropy(random_logits(2, 3), positives)
    finally:
        tracer._amp_level = outside
    assert set(levels) == {paddle.base.core.AmpLevel.O0}


def test_the_logits_are_left_as_they_are():
    logits = random_logits(3, 5)
    before = logits.numpy().copy()
    sparse_multilabel_categorical_crossentropy(logits, [[0, 0], [2, 4]]).sum().backward()
    np.testing.assert_array_equal(logits.numpy(), before)


@pytest.mark.parametrize("pair", [(0, 3), (2, 0), (0, -1), (-2, 0), (-2, -2), (10**12, 0)], ids=str)
def test_a_pair_outside_the_logits_is_an_error_that_names_it(pair):
    with pytest.raises(ValueError, match=rf"\({pair[0]}, {pair[1]}\) is outside .* 2 rows and 3 classes"):
        sparse_multilabel_categorical_crossentropy(random_logits(2, 3), [[1, 1], pair])


@pytest.mark.parametrize(
    "positives",
    [np.zeros((3,), dtype=int), np.zeros((2, 3), dtype=int), np.zeros((1, 2, 2), dtype=int), np.zeros((2, 2))],
    ids=["one axis", "three columns", "three axes", "float"],
)
def test_positives_that_are_no_pairs_of_integers_are_an_error(positives):
    for given in (positives, paddle.to_tensor(positives)):
        with pytest.raises(ValueError, match=r"integers \[count, 2\]"):
            sparse_multilabel_categorical_crossentropy(random_logits(2, 3), given)


@pytest.mark.equation("6.10")
@pytest.mark.parametrize("head", [GlobalPointer, EfficientGlobalPointer])
def test_spans_of_a_head_give_the_dense_loss_and_parameter_gradients(head):
    texts, types, seq = 3, 4, 7
    layer = head(5, types, 6)
    hidden = paddle.randn([texts, seq, 5])
    mask = paddle.to_tensor(np.arange(seq) < np.array([[7], [4], [1]]))
    spans = [(0, 0, 0, 6), (0, 0, 1, 3), (0, 3, 1, 3), (1, 2, 3, 3), (2, 1, 0, 0)]  # nested; one with two types
    labels = np.zeros((texts, types, seq, seq), dtype=bool)
    labels[tuple(zip(*spans))] = True
    positives = [(text * types + kind, start * seq + end) for text, kind, start, end in spans]
    logits = layer(hidden, mask).reshape([texts, types, -1])
    loss = sparse_multilabel_categorical_crossentropy(logits, positives)
    expected = multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels.reshape(logits.shape)))
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)
    gradients = [paddle.grad(form.mean(), layer.parameters(), retain_graph=True) for form in (loss, expected)]
    for gradient, expected_gradient in zip(*gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=1e-5, atol=1e-6)


def test_a_masked_span_as_a_positive_is_as_dear_as_in_the_dense_form():
    logits = paddle.to_tensor([[MASKED_LOGIT, 1.0, -1.0]])
    loss = sparse_multilabel_categorical_crossentropy(logits, [[0, 0]])
    expected = multilabel_categorical_crossentropy(logits, paddle.to_tensor([[True, False, False]]))
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.equation("6.12")
def test_two_thousand_types_train_from_lists_of_spans():
    texts, types, seq = 2, 2000, 64
    head = EfficientGlobalPointer(16, types, 8)
    hidden = paddle.randn([texts, seq, 16])
    lengths = np.array([64, 41])
    mask = paddle.to_tensor(np.arange(seq) < lengths[:, np.newaxis])
    row = np.random.choice(texts * types, 150, replace=False).repeat(2)  # two spans a row in 150 of 4,000 rows
    ends = np.sort(np.random.randint(0, lengths[row // types][:, np.newaxis], (300, 2)), axis=1)
    positives = paddle.to_tensor(np.stack([row, ends[:, 0] * seq + ends[:, 1]], axis=1))
    assert positives.size * positives.element_size() < 5000  # the 0/1 labels would be 16,384,000

    optimizer = paddle.optimizer.SGD(learning_rate=0.05, parameters=head.parameters())
    losses = []
    for _ in range(2):
        logits = head(hidden, mask).reshape([texts * types, -1])
        losses.append(sparse_multilabel_categorical_crossentropy(logits, positives).mean())
        losses[-1].backward()
        if len(losses) == 1:
            first_logits = logits.detach().numpy()
            assert all(bool(paddle.isfinite(p.grad).all()) for p in head.parameters())
            bias_gradient = head.type_scores.bias.grad.numpy()
        optimizer.step()
        optimizer.clear_grad()
    assert losses[1].item() < losses[0].item()
    # a type without an entity has negatives only, which push it down
    has_entity = np.isin(np.arange(types), row % types)
    assert (bias_gradient[:types][~has_entity] > 0).all()

    expected, rows_a_chunk = 0.0, 100
    for start in range(0, texts * types, rows_a_chunk):
        labels = np.zeros((rows_a_chunk, seq * seq), dtype=bool)
        chosen = positives.numpy()[(row >= start) & (row < start + rows_a_chunk)]
        labels[chosen[:, 0] - start, chosen[:, 1]] = True
        chunk = first_logits[start : start + rows_a_chunk].astype(np.float64)
        expected += loss_in_numpy(chunk, labels) * rows_a_chunk / (texts * types)
    assert losses[0].item() == pytest.approx(expected, rel=1e-6)
