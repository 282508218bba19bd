"""From scores to spans of tokens."""

import numpy as np
import paddle
import pytest

from paddle_rope import decode_spans
from paddle_rope.global_pointer.decoding import ScoredSpan
from paddle_rope.global_pointer.heads import MASKED_LOGIT


def logits_with(shape, *scores):
    """Logits that are ``MASKED_LOGIT`` but for (row, type, first token, last token or column of a band, score)."""
    logits = np.full(shape, MASKED_LOGIT, dtype=np.float32)
    for *place, score in scores:
        logits[tuple(place)] = score
    return logits


FIVE = [(0, 0, 0, 4, 3.0), (0, 1, 1, 2, 9.0), (0, 0, 3, 5, 1.0), (0, 1, 3, 5, 2.0), (0, 1, 2, 2, 0.1)]
CASES = {  # shape, scores, options, (start, end, type) of each row
    "ends are exclusive": ((1, 1, 4, 4), [(0, 0, 1, 1, 2.0), (0, 0, 2, 3, 0.5)], {}, [[(1, 2, 0), (2, 4, 0)]]),
    "nested, overlapping, of two types, in order": (
        *((1, 2, 6, 6), FIVE, {}, [[(0, 5, 0), (1, 3, 1), (2, 3, 1), (3, 6, 0), (3, 6, 1)]]),
    ),
    "each row has its own": ((3, 2, 4, 4), [(2, 1, 0, 0, 1.0), (0, 0, 1, 3, 2.0)], {}, [[(1, 4, 0)], [], [(0, 1, 1)]]),
    "a score of zero is none": ((1, 1, 2, 2), [(0, 0, 0, 0, 0.0)], {}, [[]]),
    "a threshold is no span either": (
        *((1, 1, 2, 2), [(0, 0, 0, 0, 1.5), (0, 0, 0, 1, 1.75)], {"threshold": 1.5}, [[(0, 2, 0)]]),
    ),
    "a threshold below zero": ((1, 1, 2, 2), [(0, 0, 1, 1, -1.0)], {"threshold": -1.5}, [[(1, 2, 0)]]),
    "thresholds of each type": (
        (1, 3, 3, 3),
        [(0, kind, start, start, score) for kind in range(3) for start, score in enumerate([-1.0, 0.5, 3.0])],
        {"threshold": [0.0, -2.0, 3.0]},
        [[(0, 1, 1), (1, 2, 0), (1, 2, 1), (2, 3, 0), (2, 3, 1)]],
    ),
    "columns of a band count from the start": (
        (2, 2, 5, 3),
        [(0, 1, 3, 1, 1.5), (0, 0, 3, 0, 1.5), (0, 0, 0, 2, 1.5), (1, 1, 4, 0, 1.5)],
        {"banded": True},
        [[(0, 3, 0), (3, 4, 0), (3, 5, 1)], [(4, 5, 1)]],
    ),
    "a band gives none past the end however low the threshold": (
        *((1, 1, 4, 3), [], {"banded": True, "threshold": -2e4}),
        [[(start, end, 0) for start in range(4) for end in range(start + 1, min(start + 3, 4) + 1)]],
    ),
    "a thousand types": (
        *((1, 1000, 60, 60), [(0, 999, 3, 4, 1.0), (0, 0, 3, 4, 1.0), (0, 500, 0, 59, 1.0)], {}),
        [[(0, 60, 500), (3, 5, 0), (3, 5, 999)]],
    ),
}


@pytest.mark.equation("6.14", "6.15", "6.20")
@pytest.mark.parametrize("name", CASES)
def test_scores_above_the_threshold_are_spans_by_start_end_and_type(name):
    shape, scores, options, expected = CASES[name]
    found = decode_spans(logits_with(shape, *scores), **options)
    assert [[span[:3] for span in row] for row in found] == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_tensors_and_arrays_give_the_same_plain_numbers(dtype):
    logits = logits_with((2, 2, 5, 5), (0, 1, 1, 4, 0.5), (1, 0, 0, 0, 3.25))
    expected = [[ScoredSpan(start=1, end=5, type=1, score=0.5)], [ScoredSpan(0, 1, 0, 3.25)]]
    tensor = paddle.to_tensor(logits, stop_gradient=False).astype(dtype)
    arrays = [] if dtype == "bfloat16" else [logits.astype(dtype)]  # which numpy has not
    for given in (tensor, *arrays):
        found = decode_spans(given)
        assert found == expected and [type(value) for value in found[0][0]] == [int, int, int, float]


@pytest.mark.parametrize("threshold", [[0.0], [0.0] * 3, [[0.0, 0.0]]], ids=str)
def test_thresholds_that_are_not_one_for_each_type_are_an_error(threshold):
    with pytest.raises(ValueError, match="a number or one for each of 2 types"):
        decode_spans(logits_with((1, 2, 3, 3)), threshold)
