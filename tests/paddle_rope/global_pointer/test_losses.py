"""The contract of the losses: from labels, from lists of positives, from spans on the CPU and on other devices."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import (
    EfficientGlobalPointer,
    GlobalPointer,
    backend,
    multilabel_categorical_crossentropy,
    span_positives,
    sparse_multilabel_categorical_crossentropy,
)
from paddle_rope.global_pointer.heads import MASKED_LOGIT
from paddle_rope.global_pointer.losses import span_crossentropy
from tests.helpers.comparison import assert_close, assert_same, cast, is_native, random_tensor
from tests.helpers.pairwise import pairwise
from tests.paddle_rope import reference


def labels_of(spans, shape):
    """bool ``[batch, types, seq, columns]`` with a True for each (type, first, last); columns may be a band."""
    labels = np.zeros(shape, dtype=bool)
    for text, of_text in enumerate(spans):
        for kind, first, last in of_text:
            if kind >= 0:
                labels[text, kind, first, last if shape[2] == shape[3] else last - first] = True
    return labels


def flat(x):
    return x.reshape([*x.shape[:2], -1])


def width_of(logits):
    return None if logits.shape[2] == logits.shape[3] else logits.shape[3]


def dense(logits, spans):
    return multilabel_categorical_crossentropy(flat(logits), paddle.to_tensor(flat(labels_of(spans, logits.shape))))


def sparse(logits, spans):
    _, types, seq, _ = logits.shape
    return sparse_multilabel_categorical_crossentropy(flat(logits), span_positives(spans, types, seq, width_of(logits)))


def of_spans(logits, spans, on_cpu=True):
    with pytest.MonkeyPatch.context() as patch:
        if not on_cpu:
            patch.setattr(backend, "computes_on_cpu", lambda: False)
        return span_crossentropy(logits, paddle.to_tensor(spans), width_of(logits))


LOSSES = {"dense": dense, "sparse": sparse, "spans": of_spans, "spans, elsewhere": partial(of_spans, on_cpu=False)}
each_loss = pytest.mark.parametrize("name", LOSSES)


def random_spans(batch, count, types, seq, longest):
    """Padding among them, and some twice."""
    first = np.random.randint(0, seq, (batch, count))
    last = np.minimum(first + np.random.randint(0, longest, (batch, count)), seq - 1)
    spans = np.stack([np.random.randint(-1, types, (batch, count)), first, last], axis=2)
    spans[:, count // 2 :] = spans[:, : count - count // 2]
    return spans


@pytest.mark.equation("6.6", "6.7", "6.10", "6.12", "6.13", "6.19")
@pairwise({
    "name": list(LOSSES),
    "batch, types, seq": [(1, 1, 1), (3, 4, 7), (2, 2, 5)],
    "count": [0, 1, 2, 60, None],  # None: every span
    "width": [None, 1, 3],
    "dtype, tolerance": [("float32", 1e-5), ("float64", 1e-10), ("float16", 2e-3), ("bfloat16", 2e-2)],
})  # fmt: skip
def test_values_and_gradients_equal_the_reference(name, batch, types, seq, count, width, dtype, tolerance):
    width = width if width and width < seq else None
    inputs = [random_tensor(batch, types, seq, width or seq, dtype=dtype, scale=3)]
    exact, before = cast(inputs, "float64"), inputs[0].clone()
    lengths = [min(width or seq, seq - i) for i in range(seq)]
    spans = [[(t, i, i + d) for t in range(types) for i in range(seq) for d in range(lengths[i])]] * batch
    if count is not None:
        spans = random_spans(batch, count, types, seq, width or seq)
    loss = LOSSES[name](inputs[0], np.array(spans))
    assert loss.dtype == (paddle.float64 if dtype == "float64" else paddle.float32)
    expected = reference.multilabel_categorical_crossentropy(flat(exact[0]), flat(labels_of(spans, exact[0].shape)))
    assert_close(loss, expected, min(tolerance, 1e-5))
    assert_same(loss, expected, inputs, exact, tolerance)
    assert bool((inputs[0] == before).all())
    if dtype == "float64":  # positives are pushed up and negatives down
        gradient, labels = paddle.grad(loss.sum(), inputs)[0].numpy(), labels_of(spans, inputs[0].shape)
        assert (gradient[labels] < 0).all() and (gradient[~labels] > 0).all()


# scores of a text [types, seq, seq], spans, losses of each type, what the gradients are at some places
BIG = np.full((4, 2, 2), -1.0)
BIG[0, 0, 0] = BIG[1, 0, 1] = BIG[1, 1, 1] = BIG[2, 0, 0] = BIG[2, 1, 1] = 1
OTHERS = np.exp([-2.0, 1.5, 0.25])


def extreme_cases():
    # negatives at +10,000 or positives at -10,000 cost as much
    yield 1e4 * BIG, [(1, 0, 1), (1, 1, 1), (2, 0, 1), (2, 1, 1)], [1e4, 0, 2e4, 0], {
        (0, 0, 0): 1, (2, 0, 0): 1, (2, 0, 1): -1, (1, 0, 1): 0, (3, 0, 0): 0}  # fmt: skip
    for above in (10.0, 25.0, 1000.0):  # log(sum over all - sum over positives) would be log of rounding errors
        scores = np.array([[[above, above - 1, -2.0], [1.5, above / 2, 0.25], [-1e4, -1e4, -1e4]]])
        loss = np.log1p(OTHERS.sum()) + np.log1p(np.exp(-np.array([above, above - 1, above / 2])).sum())
        slopes = dict(zip([(0, 0, 2), (0, 1, 0), (0, 1, 2)], OTHERS / (1 + OTHERS.sum())))
        yield scores, [(0, 0, 0), (0, 0, 1), (0, 1, 1)], [loss], slopes
    for score in (20.0, 700.0):  # what is excluded counts for nothing beside the smallest terms
        slopes = {(0, 0, 0): np.exp(-score), (0, 0, 1): -np.exp(-score)}
        yield np.array([[[-score, score], [MASKED_LOGIT] * 2]]), [(0, 0, 1)], [2 * np.log1p(np.exp(-score))], slopes


@pytest.mark.equation("6.8", "6.11")
@pairwise({"name": list(LOSSES), "case": range(6), "dtype, tolerance": [("float32", 1e-5), ("float64", 1e-8)]})
def test_losses_and_gradients_of_extreme_scores_are_right(name, case, dtype, tolerance):
    scores, spans, losses_of_types, slopes = list(extreme_cases())[case]
    logits = paddle.to_tensor(scores[np.newaxis], dtype=dtype, stop_gradient=False)
    loss = LOSSES[name](logits, np.array([spans]))
    np.testing.assert_allclose(loss.numpy()[0], losses_of_types, rtol=tolerance, atol=tolerance / 10)
    gradient = paddle.grad(loss.sum(), logits)[0].numpy()[0]
    for place, slope in slopes.items():
        np.testing.assert_allclose(gradient[place], slope, rtol=tolerance, atol=1e-7 if dtype == "float32" else 1e-15)


@pytest.mark.equation("6.9")
@each_loss
def test_masked_spans_cost_nothing_and_a_masked_positive_what_it_is_missing(name):
    logits, spans = random_tensor(2, 3, 4, 4), random_spans(2, 4, 3, 4, 4)
    masked = paddle.nn.functional.pad(logits, [0, 2, 0, 2], value=MASKED_LOGIT)
    assert_close(LOSSES[name](masked, spans), LOSSES[name](logits, spans), 1e-12)
    outside = LOSSES[name](paddle.full([1, 1, 2, 2], MASKED_LOGIT), np.array([[(0, 0, 1)]]))
    assert_close(outside, [[-MASKED_LOGIT]])


@each_loss
@pytest.mark.parametrize("count", [0, 2])
def test_losses_are_computed_outside_auto_cast(name, count, amp_as_on_gpu):
    levels = amp_as_on_gpu(paddle, "exp")
    LOSSES[name](random_tensor(1, 2, 3, 3), np.array([[(count - 1, 0, 0)] * 2]))
    assert set(levels) == {paddle.base.core.AmpLevel.O0}


@pytest.mark.equation("6.10")
@pytest.mark.parametrize("shape, convert, dtype", [
    ((5,), np.ndarray.tolist, "int64"),
    ((2, 1, 3, 5), np.asarray, "int32"),
    ((2, 1, 3, 5), paddle.to_tensor, "int32"),
    ((2, 1, 3, 5), paddle.to_tensor, "int64"),
], ids=["list", "array", "int32", "int64"])  # fmt: skip
def test_positives_are_numbers_of_rows_and_classes_in_any_order_and_form(shape, convert, dtype):
    logits, labels = random_tensor(*shape), np.random.uniform(size=shape) < 0.4
    positives = np.argwhere(labels.reshape(-1, 5))
    given = np.random.permutation(np.concatenate([positives, positives[::2], [[-1, -1], [-1, 3]]]))
    loss = sparse_multilabel_categorical_crossentropy(logits, convert(given.astype(dtype)))
    assert list(loss.shape) == list(shape[:-1])
    assert_same(loss, multilabel_categorical_crossentropy(logits, paddle.to_tensor(labels)), [logits], atol=1e-12)


@pytest.mark.equation("6.10")
@pytest.mark.parametrize("head", [GlobalPointer, EfficientGlobalPointer])
@pytest.mark.parametrize("width", [None, 3])
def test_the_loss_of_a_head_is_that_of_its_logits_at_any_positions(head, width, native_operators):
    layer, hidden = head(5, 4, 6, max_span_length=width), random_tensor(3, 7, 5, dtype="float32")
    mask = paddle.to_tensor(np.arange(7) < np.array([[7], [4], [1]]))
    spans = np.array([[(0, 0, 2), (0, 1, 3), (3, 1, 3)], [(2, 3, 3), (-1, 0, 0), (-1, 9, 9)], [(1, 0, 0)] * 3])
    positions = paddle.to_tensor(np.cumsum(np.random.randint(1, 5, [3, 7]), axis=1))
    loss = layer.loss(hidden, paddle.to_tensor(spans), mask, positions)
    assert is_native(loss) == (native_operators and head is EfficientGlobalPointer)
    assert_same(loss, dense(layer(hidden, mask, positions), spans), [hidden, *layer.parameters()], atol=1e-5)
