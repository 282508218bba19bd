"""From scores to spans of tokens."""

import numpy as np
import paddle
import pytest

from paddle_rope import decode_spans
from paddle_rope.global_pointer import MASKED_LOGIT, ScoredSpan


def logits_with(batch, types, seq, *scores):
    """Logits that are ``MASKED_LOGIT`` but for (row, type, first token, last token, score)."""
    logits = np.full((batch, types, seq, seq), MASKED_LOGIT, dtype=np.float32)
    for row, kind, first, last, score in scores:
        logits[row, kind, first, last] = score
    return logits


def test_ends_are_exclusive():
    (spans,) = decode_spans(logits_with(1, 1, 4, (0, 0, 1, 1, 2.0), (0, 0, 2, 3, 0.5)))
    assert spans == [ScoredSpan(1, 2, 0, 2.0), ScoredSpan(2, 4, 0, 0.5)]
    assert spans[0].start == 1 and spans[0].end == 2 and spans[0].type == 0 and spans[0].score == 2.0


def test_nested_and_overlapping_spans_and_spans_of_two_types_are_kept():
    wanted = [(0, 0, 0, 4), (0, 1, 1, 2), (0, 0, 3, 5), (0, 1, 3, 5), (0, 1, 2, 2)]
    (spans,) = decode_spans(logits_with(1, 2, 6, *((*span, 1.0) for span in wanted)))
    assert {span[:3] for span in spans} == {(first, last + 1, kind) for _, kind, first, last in wanted}
    assert len(spans) == len(wanted)


def test_the_order_is_start_end_type():
    scores = [(0, 1, 2, 2, 9.0), (0, 0, 2, 2, 1.0), (0, 1, 0, 3, 2.0), (0, 0, 0, 4, 3.0), (0, 0, 2, 4, 0.1)]
    (spans,) = decode_spans(logits_with(1, 2, 5, *scores))
    assert [span[:3] for span in spans] == [(0, 4, 1), (0, 5, 0), (2, 3, 0), (2, 3, 1), (2, 5, 0)]


def test_each_row_has_its_own_spans():
    rows = decode_spans(logits_with(3, 2, 4, (2, 1, 0, 0, 1.0), (0, 0, 1, 3, 2.0)))
    assert rows == [[(1, 4, 0, 2.0)], [], [(0, 1, 1, 1.0)]]


@pytest.mark.parametrize("threshold, found", [(0.0, 2), (-1.5, 3), (1.0, 1), (1.5, 1), (2.0, 0), (-2e4, 9)])
def test_scores_above_the_threshold_make_a_span(threshold, found):
    logits = logits_with(1, 1, 3, (0, 0, 0, 0, 2.0), (0, 0, 0, 1, 1.0), (0, 0, 1, 2, -1.0), (0, 0, 2, 2, -1.5))
    assert len(decode_spans(logits, threshold)[0]) == found


def test_a_score_of_zero_is_no_span():
    assert decode_spans(np.zeros((2, 1, 3, 3), dtype=np.float32)) == [[], []]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_tensors_and_arrays_give_the_same(dtype):
    logits = logits_with(2, 2, 5, (0, 1, 1, 4, 0.5), (1, 0, 0, 0, 3.25))
    expected = [[(1, 5, 1, 0.5)], [(0, 1, 0, 3.25)]]
    assert decode_spans(paddle.to_tensor(logits).astype(dtype)) == expected
    if dtype != "bfloat16":  # numpy has none
        assert decode_spans(logits.astype(dtype)) == expected
    tensor = paddle.to_tensor(logits)
    tensor.stop_gradient = False
    assert decode_spans(tensor * 1.0) == expected


def test_spans_are_plain_python_numbers():
    (span,) = decode_spans(logits_with(1, 1, 2, (0, 0, 0, 1, 1.5)))[0]
    assert [type(value) for value in span] == [int, int, int, float]
