"""Both heads, for all spans and for the band of short ones, against a loop over types, starts and ends."""

import numpy as np
import paddle
import pytest

from paddle_rope import EfficientGlobalPointer, GlobalPointer, decode_spans, span_positives
from paddle_rope import sparse_multilabel_categorical_crossentropy as sparse_loss
from paddle_rope.global_pointer.decoding import ScoredSpan
from paddle_rope.global_pointer.heads import MASKED_LOGIT
from tests.helpers.comparison import assert_close, assert_same, cast, random_tensor, randomize
from tests.helpers.pairwise import pairwise
from tests.paddle_rope import reference

REFERENCES = {GlobalPointer: reference.global_pointer, EfficientGlobalPointer: reference.efficient_global_pointer}


# of a band: one token, a width of one, shorter than the band, as long, blocks that are full and not; None: all spans
SIZES = [(1, None), (5, None), (1, 3), (5, 1), (5, 7), (6, 6), (33, 32), (64, 5), (71, 33), (130, 64)]


@pytest.mark.equation("6.1", "6.2", "6.3", "6.4", "6.5", "6.16", "6.17", "6.18")
@pairwise({
    "head": list(REFERENCES),
    "use_rope": [False, True],
    "mask_dtype": [None, "bool", "int64"],
    "placed": [False, True],
    "seq, width": SIZES,
    "dtype, tolerance": [("float32", 2e-5), ("float64", 1e-11)],
})  # fmt: skip
def test_logits_and_gradients_equal_the_reference(head, use_rope, mask_dtype, placed, seq, width, dtype, tolerance):
    sizes = 5, 2, 4 if use_rope else 5
    exact_layer, layer = (randomize(head(*sizes, use_rope, max_span_length=width), one) for one in ("float64", dtype))
    layer.set_state_dict({name: value.astype(dtype) for name, value in exact_layer.state_dict().items()})
    exact, mask = random_tensor(2, seq, 5), np.ones((2, seq), dtype=bool)
    (hidden,) = cast([exact], dtype)
    mask[0, 1:2] = mask[1, 0] = mask_dtype is None
    places = np.sort(np.random.uniform(0, 3 * seq, (2, seq))) if placed else range(seq)
    positions = paddle.to_tensor(places) if placed else None
    token_mask = mask_dtype and paddle.to_tensor(mask).astype(mask_dtype)
    logits = layer(hidden, token_mask, positions)
    shifted = layer(hidden, token_mask, paddle.to_tensor(np.add(places, 37)))  # as by padding on the left
    expected = REFERENCES[head](exact_layer, exact, places, mask)
    if width is not None:
        past_the_end = paddle.full([2, 2, seq, width], MASKED_LOGIT, dtype="float64")
        column = np.broadcast_to(np.arange(seq)[:, np.newaxis] + np.arange(width), past_the_end.shape)
        expected = paddle.concat([expected, past_the_end], axis=-1)
        expected = paddle.take_along_axis(expected, paddle.to_tensor(column), axis=-1)
    assert logits.dtype == hidden.dtype
    assert_same(logits, expected, [hidden, *layer.parameters()], [exact, *exact_layer.parameters()], tolerance)
    is_span = expected.numpy() != MASKED_LOGIT
    for found in (logits, shifted):
        assert (found.numpy()[~is_span] == MASKED_LOGIT).all()
        assert_close(found.numpy()[is_span], expected.numpy()[is_span], tolerance)
    gradient, *_ = paddle.grad(logits.sum(), [hidden, *layer.parameters()])  # native operators: of all or none
    assert ((gradient.numpy() == 0).all(axis=-1) == ~mask).all()
    assert np.float16(MASKED_LOGIT) == MASKED_LOGIT and np.exp(np.float32(MASKED_LOGIT)) == 0


@pytest.mark.equation("6.21")
def test_a_hundred_thousand_tokens_are_scored_learned_and_decoded():
    # all spans would be 40 GB of scores
    seq, width = 100_000, 8
    band, hidden = EfficientGlobalPointer(4, 2, 8, max_span_length=width), paddle.randn([1, seq, 4])
    logits = band(hidden)
    positives = span_positives([[(0, 5, 7), (1, 99_990, 99_997), (0, seq - 1, seq - 1)]], 2, seq, width)
    sparse_loss(logits.reshape([1, 2, -1]), positives).mean().backward()
    assert logits.shape == [1, 2, seq, width] and (band.dense.weight.grad.numpy() != 0).all()
    scores = logits.numpy()
    assert (scores[..., -1, 1:] == MASKED_LOGIT).all() and (scores[..., :-width, :] != MASKED_LOGIT).all()
    scores[0, 1, 99_990, 7] = 1e3
    assert decode_spans(scores, 999.0, banded=True) == [[(99_990, 99_998, 1, 1e3)]]


# ---- from scores to spans of tokens
@pytest.mark.equation("6.14", "6.15", "6.20")
@pairwise({
    "shape": [(1, 1, 2, 2), (3, 2, 6, 6), (1, 300, 4, 4), (2, 2, 5, 3)],
    "threshold": [0.0, 1.5, -2e4, "of types"],
})  # fmt: skip
def test_scores_above_the_threshold_are_spans_by_start_end_and_type(shape, threshold):
    texts, types, seq, columns = shape
    logits = np.random.randint(-3, 4, shape) / 2  # some are equal to a threshold
    is_span = np.random.random(shape) < 0.7
    if columns < seq:  # a band extends past the text
        is_span &= np.add.outer(range(seq), range(columns)) < seq
    logits[~is_span] = MASKED_LOGIT
    bounds = [0.5 * (kind % 3) for kind in range(types)] if threshold == "of types" else threshold
    banded, expected = columns < seq, [[] for _ in range(texts)]
    for text, kind, start, column in np.argwhere(is_span & (logits > np.reshape(bounds, [-1, 1, 1]))).tolist():
        end = column + 1 + banded * start
        expected[text].append((start, end, kind, logits[text, kind, start, column]))
    assert decode_spans(logits, bounds, banded) == [sorted(of_text) for of_text in expected]


@pytest.mark.parametrize("most", [0, 1, 5, 99])
def test_the_highest_spans_of_each_text_are_kept(most):
    logits = np.random.default_rng(0).normal(size=[3, 2, 6, 6])
    logits[1, :, :, 1:] = MASKED_LOGIT
    expected = [sorted(sorted(spans, key=lambda span: -span.score)[:most]) for spans in decode_spans(logits)]
    assert decode_spans(logits, most=most) == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64"])
def test_tensors_and_arrays_give_the_same_plain_numbers(dtype):
    logits = np.full([2, 1, 5, 5], MASKED_LOGIT, dtype="float32")
    logits[0, 0, 1, 4], logits[1, 0, 0, 0] = 0, 3
    expected = [[ScoredSpan(start=1, end=5, type=0, score=0.0)], [ScoredSpan(0, 1, 0, 3.0)]]
    arrays = [] if dtype == "bfloat16" else [logits.astype(dtype)]  # which numpy has not
    for given in (paddle.to_tensor(logits, stop_gradient=False).astype(dtype), *arrays):
        for threshold in (-0.5, -2e4):  # which keeps its fraction; masked scores are below any
            found = decode_spans(given, threshold)
            assert found == expected and [type(value) for value in found[0][0]] == [int, int, int, float]
