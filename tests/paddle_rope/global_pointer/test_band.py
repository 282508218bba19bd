"""The band of short spans against the reference and against the same spans of the full head."""

import numpy as np
import paddle
import pytest

from paddle_rope import (
    EfficientGlobalPointer,
    GlobalPointer,
    decode_spans,
    reference,
    span_positives,
    sparse_multilabel_categorical_crossentropy,
)
from paddle_rope.global_pointer import MASKED_LOGIT
from paddle_rope.global_pointer.band import band_ends, band_products
from tests.helpers.pairwise import pairwise

REFERENCES = {GlobalPointer: reference.global_pointer, EfficientGlobalPointer: reference.efficient_global_pointer}
both_heads = pytest.mark.parametrize("head", REFERENCES)
# (seq, width): one token, a width of one, shorter than the band, as long, blocks that are full and not
SIZES = [(1, 1), (1, 4), (5, 1), (5, 7), (6, 6), (32, 3), (33, 32), (64, 5), (71, 33), (100, 40), (130, 64)]
every_size = pytest.mark.parametrize("seq, width", SIZES)


def random_head(head, types=3, head_size=4, use_rope=True, dtype="float64"):
    layer = head(5, types, head_size, use_rope)
    layer.to(dtype=dtype)
    for parameter in layer.parameters():  # biases too
        parameter.set_value(paddle.to_tensor(np.random.standard_normal(parameter.shape), dtype=dtype))
    return layer


def banded(layer, width):
    """A banded head with the weights of a full one."""
    band = type(layer)(5, layer.num_types, layer.head_size, layer.rotary is not None, max_span_length=width)
    band.to(dtype=layer.dense.weight.dtype)
    missing, unexpected = band.set_state_dict(layer.state_dict())
    assert missing == [] and unexpected == []
    return band


def random_hidden(*shape, dtype="float64"):
    hidden = paddle.to_tensor(np.random.standard_normal(shape), dtype=dtype)
    hidden.stop_gradient = False
    return hidden


def band_of(full, width, outside):
    """(i, i + d) of ``[..., seq, seq]``, ``outside`` past the end."""
    outside = paddle.full([*full.shape[:-1], width], outside, dtype=full.dtype)
    column = np.arange(full.shape[-1])[:, np.newaxis] + np.arange(width)
    column = paddle.to_tensor(np.broadcast_to(column, outside.shape))
    return paddle.take_along_axis(paddle.concat([full, outside], axis=-1), column, axis=-1)


def assert_equal_with_gradients(scores, expected, wanted, expected_wanted, tolerance):
    assert scores.shape == expected.shape
    np.testing.assert_allclose(scores.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
    towards = paddle.to_tensor(np.random.standard_normal(scores.shape), dtype=scores.dtype)
    gradients = paddle.grad((scores * towards).sum(), wanted)
    expected_gradients = paddle.grad((expected * towards).sum(), expected_wanted)
    for gradient, expected_gradient in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=tolerance, atol=100 * tolerance)


@pytest.mark.equation("6.17")
@pairwise(
    {
        "seq, width": [(1, 1), (1, 3), (5, 1), (5, 2), (6, 6), (4, 9)],
        "head": list(REFERENCES),
        "use_rope": [False, True],
        "masked": [False, True],
    }
)
def test_scores_and_gradients_equal_the_reference(head, use_rope, masked, seq, width):
    layer = random_head(head, types=2, use_rope=use_rope)
    band = banded(layer, width)
    hidden = random_hidden(2, seq, 5)
    mask = np.ones((2, seq), dtype=bool)
    mask[0, 1:2] = mask[1, 0] = not masked
    expected = reference.band_of_spans(REFERENCES[head](layer, hidden, mask), width)
    scores = band(hidden, paddle.to_tensor(mask) if masked else None)
    wanted, expected_wanted = [hidden, *band.parameters()], [hidden, *layer.parameters()]
    assert_equal_with_gradients(scores, expected, wanted, expected_wanted, 1e-12)


@pytest.mark.equation("6.17")
@pairwise({"seq, width": SIZES, "head": list(REFERENCES), "dtype, tolerance": [("float32", 2e-5), ("float64", 1e-12)]})
def test_scores_and_gradients_equal_those_of_the_full_head(head, seq, width, dtype, tolerance):
    layer = random_head(head, dtype=dtype)
    band = banded(layer, width)
    hidden = random_hidden(2, seq, 5, dtype=dtype)
    mask = paddle.to_tensor(np.random.uniform(size=(2, seq)) < 0.8)
    positions = paddle.to_tensor(np.sort(np.random.uniform(0, 3 * seq, (2, seq)), axis=1))
    for options in ({}, {"token_mask": mask}, {"positions": positions}, {"token_mask": mask, "positions": positions}):
        expected = band_of(layer(hidden, **options), width, MASKED_LOGIT)
        wanted, expected_wanted = [hidden, *band.parameters()], [hidden, *layer.parameters()]
        assert_equal_with_gradients(band(hidden, **options), expected, wanted, expected_wanted, tolerance)


@pytest.mark.equation("6.16")
@every_size
@pytest.mark.parametrize("leading", [(), (3,), (2, 2)], ids=str)
def test_products_and_ends_are_those_of_the_definition(leading, seq, width):
    q, k = (random_hidden(*leading, seq, 3) for _ in range(2))
    x = random_hidden(*leading, seq)
    expected = band_of(paddle.matmul(q, k, transpose_y=True), width, 0.0)
    assert_equal_with_gradients(band_products(q, k, width), expected, [q, k], [q, k], 1e-13)
    expected = band_of(x.unsqueeze(-2).expand([*leading, seq, seq]), width, 0.0)
    np.testing.assert_array_equal(band_ends(x, width).numpy(), expected.numpy())


@pytest.mark.equation("6.18")
@both_heads
def test_what_is_past_the_end_or_masked_holds_the_masked_logit_and_sends_back_no_gradient(head):
    band = banded(random_head(head), 4)
    hidden = random_hidden(1, 6, 5)
    mask = np.array([[0, 1, 1, 0, 1, 0]], dtype=bool)
    scores = band(hidden, paddle.to_tensor(mask))
    is_span = [(i, d) for i in range(6) for d in range(4) if i + d < 6 and mask[0, i] and mask[0, i + d]]
    assert is_span == [(1, 0), (1, 1), (1, 3), (2, 0), (2, 2), (4, 0)]
    found = np.zeros((6, 4), dtype=bool)
    found[tuple(zip(*is_span))] = True
    assert (scores.numpy()[0][:, ~found] == MASKED_LOGIT).all()
    assert (np.abs(scores.numpy()[0][:, found]) < 1000).all()
    (gradient,) = paddle.grad(scores.sum(), hidden)
    assert (gradient.numpy()[~mask] == 0).all()
    assert (gradient.numpy()[mask] != 0).all()


@pytest.mark.equation("6.20")
@both_heads
@pytest.mark.parametrize("threshold", [0.0, -0.5, [0.3, -1.0, 2.0]], ids=str)
def test_decoding_a_band_gives_the_spans_of_the_full_head_up_to_its_length(head, threshold):
    layer = random_head(head)
    hidden = random_hidden(3, 40, 5)
    mask = paddle.to_tensor(np.arange(40) < np.array([[40], [7], [1]]))
    every = decode_spans(layer(hidden, mask), threshold)
    found = decode_spans(banded(layer, 6)(hidden, mask), threshold, banded=True)
    short = [[span for span in row if span.end - span.start <= 6] for row in every]
    assert sum(map(len, short)) > 20 and sum(map(len, short)) < sum(map(len, every))
    assert [[span[:3] for span in row] for row in found] == [[span[:3] for span in row] for row in short]
    scores = [[span.score for row in rows for span in row] for rows in (found, short)]
    np.testing.assert_allclose(*scores, rtol=1e-6, atol=1e-6)


@pytest.mark.equation("6.19")
@both_heads
def test_the_loss_of_a_band_is_that_of_the_full_head_without_longer_spans(head):
    texts, types, seq, width = 3, 4, 37, 5
    layer = random_head(head, types)
    band = banded(layer, width)
    hidden = random_hidden(texts, seq, 5)
    spans = np.full((texts, 3, 3), -1)
    spans[0] = [(0, 0, 4), (0, 1, 3), (3, 1, 3)]  # nested; one with two types
    spans[1, 0] = (2, 36, 36)
    position = paddle.arange(seq)
    is_short = position - position.unsqueeze(1) < width
    full = layer(hidden)
    full = paddle.where(is_short.expand(full.shape), full, paddle.full_like(full, MASKED_LOGIT))
    losses = [
        sparse_multilabel_categorical_crossentropy(
            logits.reshape([texts, types, -1]), span_positives(spans, types, seq, width_of_logits)
        )
        for logits, width_of_logits in ((band(hidden), width), (full, None))
    ]
    wanted, expected_wanted = [hidden, *band.parameters()], [hidden, *layer.parameters()]
    assert_equal_with_gradients(*losses, wanted, expected_wanted, 1e-11)


@pytest.mark.equation("6.21")
def test_a_hundred_thousand_tokens_are_scored_learned_and_decoded():
    # all spans would be 40 GB of scores
    seq, width = 100_000, 8
    band = EfficientGlobalPointer(4, 2, 8, max_span_length=width)
    hidden = paddle.randn([1, seq, 4])
    spans = np.array([[(0, 5, 7), (1, 99_990, 99_997), (0, seq - 1, seq - 1)]])
    positives = span_positives(spans, 2, seq, width)
    optimizer = paddle.optimizer.Adam(learning_rate=0.1, parameters=band.parameters())
    losses = []
    for _ in range(2):
        logits = band(hidden)
        losses.append(sparse_multilabel_categorical_crossentropy(logits.reshape([1, 2, -1]), positives).mean())
        losses[-1].backward()
        optimizer.step()
        optimizer.clear_grad()
    assert logits.shape == [1, 2, seq, width]
    assert losses[1].item() < losses[0].item()
    far = float(logits[0, 1, 99_990, 7])
    highest = decode_spans(logits, far - 1e-6, banded=True)[0]
    assert any(span[:3] == (99_990, 99_998, 1) for span in highest)
    assert all(span.end <= seq for span in highest)


@pytest.mark.equation("6.19")
def test_spans_become_rows_and_classes():
    spans = [[(1, 2, 4), (0, 0, 0), (-1, -1, -1)], [(-1, 0, 0), (-1, 9, 9), (2, 3, 3)]]
    expected = [[0, 0], [1, 2 * 6 + 4], [5, 3 * 6 + 3]]  # sorted
    assert span_positives(spans, 3, 6).tolist() == expected
    assert span_positives(paddle.to_tensor(spans), 3, 6).tolist() == expected
    assert span_positives(spans, 3, 6, max_span_length=3).tolist() == [[0, 0], [1, 2 * 3 + 2], [5, 3 * 3]]
    assert span_positives([spans[0] * 2, spans[1] * 2], 3, 6).tolist() == expected  # each once
    assert span_positives(np.full((2, 1, 3), -1), 3, 6).shape == (0, 2)


@pytest.mark.parametrize("span", [(3, 0, 0), (-2, 0, 0), (0, 2, 1), (0, -1, 0), (0, 0, 6), (0, 0, 3)], ids=str)
def test_a_span_outside_the_logits_is_an_error_that_names_it(span):
    message = rf"\({span[0]}, {span[1]}, {span[2]}\) of text 1 is outside the logits of 3 types, 6 tokens and .* most 3"
    with pytest.raises(ValueError, match=message):
        span_positives([[(0, 0, 0)], [span]], 3, 6, max_span_length=3)


def test_without_a_bound_the_last_token_is_the_last_of_the_text():
    assert span_positives([[(0, 1, 5)]], 3, 6).tolist() == [[0, 1 * 6 + 5]]
    with pytest.raises(ValueError, match=r"\(0, 1, 6\) of text 0 is outside the logits of 3 types, 6 tokens"):
        span_positives([[(0, 1, 6)]], 3, 6)


@pytest.mark.parametrize("shape, dtype", [((2, 3), "int64"), ((1, 2, 4), "int64"), ((1, 1, 3), "float32")], ids=str)
def test_spans_that_are_no_triples_of_integers_are_an_error(shape, dtype):
    with pytest.raises(ValueError, match=r"integers \[batch, count, 3\]"):
        span_positives(np.zeros(shape, dtype=dtype), 3, 6)


@both_heads
@pytest.mark.parametrize("width", [0, -1, 2.5, True, "8", 2**16 + 1])
def test_a_width_that_cannot_be_is_an_error(head, width):
    with pytest.raises(ValueError, match="max_span_length must be an integer of 1 to 65,536 or None, got"):
        head(4, 2, 4, max_span_length=width)
