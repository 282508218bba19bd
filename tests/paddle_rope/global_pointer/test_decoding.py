"""From scores to spans of tokens."""

import numpy as np
import paddle
import pytest

from paddle_rope import decode_spans
from paddle_rope.global_pointer.decoding import ScoredSpan
from paddle_rope.global_pointer.heads import MASKED_LOGIT


def logits_with(batch, types, seq, *scores):
    """Logits that are ``MASKED_LOGIT`` but for (row, type, first token, last token, score)."""
    logits = np.full((batch, types, seq, seq), MASKED_LOGIT, dtype=np.float32)
    for row, kind, first, last, score in scores:
        logits[row, kind, first, last] = score
    return logits


@pytest.mark.equation("6.14")
def test_ends_are_exclusive():
    (spans,) = decode_spans(logits_with(1, 1, 4, (0, 0, 1, 1, 2.0), (0, 0, 2, 3, 0.5)))
    assert spans == [ScoredSpan(1, 2, 0, 2.0), ScoredSpan(2, 4, 0, 0.5)]
    assert spans[0].start == 1 and spans[0].end == 2 and spans[0].type == 0 and spans[0].score == 2.0


@pytest.mark.equation("6.15")
def test_nested_and_overlapping_spans_and_spans_of_two_types_are_kept():
    wanted = [(0, 0, 0, 4), (0, 1, 1, 2), (0, 0, 3, 5), (0, 1, 3, 5), (0, 1, 2, 2)]
    (spans,) = decode_spans(logits_with(1, 2, 6, *((*span, 1.0) for span in wanted)))
    assert {span[:3] for span in spans} == {(first, last + 1, kind) for _, kind, first, last in wanted}
    assert len(spans) == len(wanted)


@pytest.mark.equation("6.14")
def test_the_order_is_start_end_type():
    scores = [(0, 1, 2, 2, 9.0), (0, 0, 2, 2, 1.0), (0, 1, 0, 3, 2.0), (0, 0, 0, 4, 3.0), (0, 0, 2, 4, 0.1)]
    (spans,) = decode_spans(logits_with(1, 2, 5, *scores))
    assert [span[:3] for span in spans] == [(0, 4, 1), (0, 5, 0), (2, 3, 0), (2, 3, 1), (2, 5, 0)]


@pytest.mark.equation("6.14")
def test_each_row_has_its_own_spans():
    rows = decode_spans(logits_with(3, 2, 4, (2, 1, 0, 0, 1.0), (0, 0, 1, 3, 2.0)))
    assert rows == [[(1, 4, 0, 2.0)], [], [(0, 1, 1, 1.0)]]


@pytest.mark.equation("6.14")
@pytest.mark.parametrize("threshold, found", [(0.0, 2), (-1.5, 3), (1.0, 1), (1.5, 1), (2.0, 0), (-2e4, 9)])
def test_scores_above_the_threshold_make_a_span(threshold, found):
    logits = logits_with(1, 1, 3, (0, 0, 0, 0, 2.0), (0, 0, 0, 1, 1.0), (0, 0, 1, 2, -1.0), (0, 0, 2, 2, -1.5))
    assert len(decode_spans(logits, threshold)[0]) == found


@pytest.mark.equation("6.14")
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


def test_each_type_may_have_its_own_threshold():
    scores = [(0, kind, start, start, score) for kind in range(3) for start, score in enumerate([-1.0, 0.5, 3.0])]
    (spans,) = decode_spans(logits_with(1, 3, 3, *scores), [0.0, -2.0, 3.0])
    assert [span[:3] for span in spans] == [(0, 1, 1), (1, 2, 0), (1, 2, 1), (2, 3, 0), (2, 3, 1)]


@pytest.mark.parametrize("threshold", [[0.0], [0.0] * 3, [[0.0, 0.0]]], ids=str)
def test_thresholds_that_are_not_one_for_each_type_are_an_error(threshold):
    with pytest.raises(ValueError, match="a number or one for each of 2 types"):
        decode_spans(logits_with(1, 2, 3), threshold)


def test_columns_of_a_band_count_from_the_start():
    band = np.full((2, 2, 5, 3), MASKED_LOGIT, dtype=np.float32)
    band[0, 1, 3, 1] = band[0, 0, 3, 0] = band[0, 0, 0, 2] = band[1, 1, 4, 0] = 1.5
    assert decode_spans(band, banded=True) == [[(0, 3, 0, 1.5), (3, 4, 0, 1.5), (3, 5, 1, 1.5)], [(4, 5, 1, 1.5)]]


def test_a_band_gives_no_span_past_the_end_however_low_the_threshold():
    found = decode_spans(np.full((1, 1, 4, 3), MASKED_LOGIT, dtype=np.float32), -2e4, banded=True)[0]
    assert [span[:2] for span in found] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_a_thousand_types_are_decoded():
    logits = np.full((1, 1000, 60, 60), -3.0, dtype=np.float32)
    logits[0, 999, 3, 4] = logits[0, 0, 3, 4] = logits[0, 500, 0, 59] = 1.0
    assert [span[:3] for span in decode_spans(logits)[0]] == [(0, 60, 500), (3, 5, 0), (3, 5, 999)]
