"""The loss of spans on other devices than the CPU against the one from lists of positives, computed on the CPU."""

import numpy as np
import paddle
import pytest

from paddle_rope.global_pointer import losses, span_crossentropy
from tests.helpers.pairwise import pairwise


@pytest.fixture
def elsewhere(monkeypatch):
    """From the call on the loss is computed as on another device."""
    return lambda: monkeypatch.setattr(losses, "computes_on_cpu", lambda: False)


def drawn_spans(batch, count, types, seq, longest):
    first = np.random.randint(0, seq, (batch, count))
    last = np.minimum(first + np.random.randint(0, longest, (batch, count)), seq - 1)
    kind = np.random.randint(-1, types, (batch, count))
    spans = np.stack([kind, first, last], axis=2)
    spans[:, count // 2 :] = spans[:, : count - count // 2]  # some twice
    return paddle.to_tensor(spans)


@pairwise(
    {
        "batch, types, seq": [(1, 1, 1), (3, 4, 7), (2, 5, 12)],
        "count": [1, 6, 30],
        "width": [None, 1, 3],
        "dtype, tolerance": [("float32", 1e-5), ("float64", 1e-12), ("bfloat16", 1e-5)],
    }
)
def test_losses_and_gradients_are_those_on_the_cpu(batch, types, seq, count, width, dtype, tolerance, elsewhere):
    spans = drawn_spans(batch, count, types, seq, width or seq)
    logits = (3 * paddle.randn([batch, types, seq, width or seq])).astype(dtype)
    logits.stop_gradient = False
    weights = paddle.rand([batch, types])
    found = []
    for _ in range(2):
        loss = span_crossentropy(logits, spans, width)
        (gradient,) = paddle.grad((loss * weights.astype(loss.dtype)).sum(), [logits])
        found.append((loss.numpy(), gradient.astype("float32").numpy()))
        elsewhere()
    assert found[1][0].dtype == found[0][0].dtype
    for on_cpu, there in zip(*found):
        np.testing.assert_allclose(there, on_cpu, rtol=0, atol=tolerance)


def test_texts_without_spans(elsewhere):
    logits = paddle.randn([2, 3, 4, 4])
    expected = span_crossentropy(logits, paddle.full([2, 2, 3], -1, dtype="int64")).numpy()
    elsewhere()
    for count in (0, 1, 2):
        spans = paddle.full([2, count, 3], -1, dtype="int64")
        np.testing.assert_allclose(span_crossentropy(logits, spans).numpy(), expected, rtol=0, atol=1e-6)
