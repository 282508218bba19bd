"""The loss of GlobalPointer's logits, given the spans that are there."""

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_rope.global_pointer.losses import (
    EXCLUDED,
    logsumexp,
    span_positives,
    sparse_multilabel_categorical_crossentropy,
)
from paddle_rope.layers import computes_on_cpu
from paddle_rope.precision import at_least_float32, without_amp


def span_crossentropy(logits: Tensor, spans: Tensor, max_span_length: int | None = None) -> Tensor:
    """:func:`~paddle_rope.multilabel_categorical_crossentropy` of all spans of a type in a text (kexue.fm 7359, 8373).

    On CPU it is :func:`~paddle_rope.sparse_multilabel_categorical_crossentropy`, which checks the spans. Elsewhere it
    fetches nothing from the device, so that no step waits for the one before: spans outside the logits are then not
    noticed.

    Args:
        logits: ``[batch, types, seq, seq]``, or ``[batch, types, seq, max_span_length]`` in a band.
        spans: integers ``[batch, count, 3]``: (type, first token, last token); a type of -1 is padding, and a span
            given twice counts once.
        max_span_length: width of a band; None for the logits of all spans.

    Returns:
        float32 (float64 for float64 logits) ``[batch, types]``; take the mean.

    Raises:
        ValueError: on CPU, if a span is outside the logits.

    Example:
        >>> logits = paddle.zeros([1, 2, 4, 4])
        >>> tuple(span_crossentropy(logits, paddle.to_tensor([[[1, 0, 2]]])).shape)  # tokens 0 to 2, of type 1
        (1, 2)
    """
    batch, types, seq, _ = logits.shape
    if computes_on_cpu():
        positives = span_positives(spans, types, seq, max_span_length)
        return sparse_multilabel_categorical_crossentropy(logits.reshape([batch, types, -1]), positives)
    (logits,) = at_least_float32(logits)
    if not spans.shape[1]:
        spans = paddle.full([batch, 1, 3], -1, dtype="int64")
    with without_amp():
        return _on_device(
            logits.reshape([batch, types, -1]), spans, max_span_length or seq, max_span_length is not None
        )


def _on_device(logits, spans, width, in_band):
    batch, types, classes = logits.shape
    kind, first, last = spans.unbind(axis=2)  # [batch, count] each
    known = paddle.tril(_equal_pairs(spans), -1).sum(axis=-1) == 0  # no span before it is the same
    counts = known & (kind >= 0)
    place = kind * classes + first * width + (last - first if in_band else last)
    place = place + paddle.arange(batch, dtype=place.dtype).unsqueeze(1) * (types * classes)
    flat = logits.reshape([-1])
    behind = flat.shape[0]  # where padding goes
    gathered = paddle.gather(flat, paddle.where(counts, place, paddle.zeros_like(place)).reshape([-1]))
    targets = paddle.where(counts, place, paddle.full_like(place, behind)).reshape([-1])
    longer = paddle.concat([flat, paddle.zeros([1], flat.dtype)])
    others = paddle.scatter(longer, targets, paddle.full_like(gathered, EXCLUDED))[:behind]
    of_type = (kind.unsqueeze(1) == paddle.arange(types, dtype=kind.dtype).unsqueeze(1)) & counts.unsqueeze(1)
    scores = -gathered.reshape([batch, 1, -1]).expand(of_type.shape)  # [batch, types, count]
    there = paddle.where(of_type, scores, paddle.full_like(scores, EXCLUDED))
    return F.softplus(logsumexp(others.reshape(logits.shape))) + F.softplus(logsumexp(there))


def _equal_pairs(spans):
    """Whether span i of a text is its span j: int32 ``[batch, count, count]``."""
    return (spans.unsqueeze(1) == spans.unsqueeze(2)).all(axis=-1).astype("int32")
