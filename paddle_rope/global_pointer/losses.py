"""The loss for choosing any number of classes out of many, given labels of 0 and 1, a list of the positives, or the
spans of a GlobalPointer."""

import math

import numpy as np
import numpy.typing as npt
import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_rope.backend import at_least_float32, values_on_cpu, without_amp

EXCLUDED = -1e9  # a float32 score that is negligible compared with any other
_SMALLEST_EXPONENT = -40.0  # exp of it is lost in a float32 sum; smaller ones underflow, which is slow on CPU


def multilabel_categorical_crossentropy(logits: Tensor, labels: Tensor) -> Tensor:
    r"""log(1 + sum_{n in negatives} exp(s_n)) + log(1 + sum_{p in positives} exp(-s_p)).

    Softmax cross-entropy for several positive classes (kexue.fm 7359): every positive score is pushed above 0 and every
    negative one below, with no weighting between few positives and many negatives. It is finite for scores of any size.

    ``logits`` are ``[..., classes]`` (flatten the last two axes of a GlobalPointer's), ``labels`` bool or 0/1 of the
    same shape, otherwise ValueError. The result is float32 (float64 for float64 logits) ``[...]``; take the mean.

    >>> logits, labels = paddle.to_tensor([[9.0, -9.0, -9.0]]), paddle.to_tensor([[1, 0, 0]])
    >>> multilabel_categorical_crossentropy(logits, labels).item() < 0.001
    True
    """
    if logits.shape != labels.shape:
        raise ValueError(f"logits {list(logits.shape)} and labels {list(labels.shape)} must have the same shape")
    (logits,) = at_least_float32(logits)
    with without_amp():  # O2 would make EXCLUDED a float16, which is infinite
        positive = labels.astype("bool")
        excluded = paddle.full_like(logits, EXCLUDED)
        negatives = logsumexp(paddle.where(positive, excluded, logits))
        positives = logsumexp(paddle.where(positive, -logits, excluded))
        return F.softplus(negatives) + F.softplus(positives)  # softplus(logsumexp(x)) = log(1 + sum exp(x))


def sparse_multilabel_categorical_crossentropy(logits: Tensor, positives: Tensor | npt.ArrayLike) -> Tensor:
    r"""The loss of :func:`multilabel_categorical_crossentropy`, given only the indices of the positives.

    For many classes with few positives (kexue.fm 8888): it makes no label tensor as large as the logits. The sum over
    the negatives is not, as there, the sum over all minus that over the positives, which loses all precision when the
    positives dominate: the positives are excluded in a copy of the logits.

    ``positives`` are integers ``[count, 2]``, tensor or array: (row, class) of each positive, in any order. Rows index
    the flattened leading axes of the logits. A pair given twice counts once; row -1 is padding. Other pairs outside
    the logits raise ValueError.

    >>> logits = paddle.to_tensor([[9.0, -9.0, -9.0]])
    >>> sparse_multilabel_categorical_crossentropy(logits, [[0, 0]]).item() < 0.001  # class 0 of row 0
    True
    """
    *leading, classes = logits.shape
    places = _flat_places(positives, math.prod(leading), classes)
    (logits,) = at_least_float32(logits)
    with without_amp():
        logits = logits.reshape([-1])
        if not len(places):
            return F.softplus(logsumexp(logits.reshape([*leading, classes])))
        rows, row_of_place = np.unique(places // classes, return_inverse=True)
        rows, row_of_place, places = (paddle.to_tensor(array) for array in (rows, row_of_place, places))
        excluded = paddle.full(places.shape, EXCLUDED, dtype=logits.dtype)
        negatives = logsumexp(paddle.scatter(logits, places, excluded).reshape([-1, classes]))
        positives = _segment_logsumexp(-paddle.gather(logits, places), row_of_place)  # of the rows that have any
        losses = paddle.scatter_nd_add(F.softplus(negatives), rows.unsqueeze(1), F.softplus(positives))
        return losses.reshape(leading)


def span_positives(
    spans: Tensor | npt.ArrayLike, num_types: int, seq: int, max_span_length: int | None = None, ordered: bool = True
) -> np.ndarray:
    """Spans as the positives of :func:`sparse_multilabel_categorical_crossentropy` on flattened GlobalPointer logits.

    Args:
        spans: integers ``[batch, count, 3]``, tensor or array: (type, first token, last token) of the spans of each
            text; a type of -1 is padding. Other spans outside the logits raise ValueError.
        num_types, seq: sizes of the logits ``[batch, types, seq, ...]``.
        max_span_length: width of a band; None for the logits of all spans.
        ordered: whether a last token before the first is an error as well.

    Returns:
        int64 array ``[number of spans, 2]`` of distinct, sorted (row, class): row = text * types + type;
        class = first * seq + last, in a band first * max_span_length + last - first.

    >>> span_positives([[[1, 0, 2]]], num_types=2, seq=4)  # tokens 0 to 2, of type 1
    array([[1, 2]])
    """
    rows, spans = sorted_spans(spans, num_types, seq, max_span_length, ordered)
    classes = spans[:, 0] * seq + spans[:, 1]
    if max_span_length is not None:
        classes = spans[:, 0] * max_span_length + spans[:, 1] - spans[:, 0]
    return np.stack([rows, classes], axis=1)


def span_crossentropy(
    logits: Tensor, spans: Tensor, max_span_length: int | None = None, ordered: bool = True
) -> Tensor:
    """:func:`~paddle_rope.multilabel_categorical_crossentropy` of all spans of a type in a text (kexue.fm 7359, 8373).

    On CPU it is :func:`~paddle_rope.sparse_multilabel_categorical_crossentropy`, which checks the spans. Elsewhere it
    fetches nothing from the device, so that no step waits for the previous one; spans outside the logits then go
    unnoticed.

    ``logits`` are ``[batch, types, seq, seq]`` or the band ``[batch, types, seq, max_span_length]``, ``spans`` as in
    :func:`span_positives`; a span given twice counts once, and unless ``ordered`` its last token may come before its
    first. The result is ``[batch, types]``; take the mean.

    >>> logits, spans = paddle.full([1, 1, 2, 2], -20.0), paddle.to_tensor([[[0, 0, 1]]])  # type 0, tokens 0 to 1
    >>> round(span_crossentropy(logits, spans).item())
    20
    """
    batch, types, seq, _ = logits.shape
    if spans.shape[0] != batch:
        raise ValueError(
            f"spans must be [batch, count, 3] with the batch of the logits, {batch}, got {list(spans.shape)}"
        )
    known = values_on_cpu(spans)
    if known is not None:
        positives = span_positives(known, types, seq, max_span_length, ordered)
        return sparse_multilabel_categorical_crossentropy(logits.reshape([batch, types, -1]), positives)
    (logits,) = at_least_float32(logits)
    if not spans.shape[1]:
        spans = paddle.full([batch, 1, 3], -1, dtype="int64")
    with without_amp():
        width, in_band = max_span_length or seq, max_span_length is not None
        return _without_fetching(logits.reshape([batch, types, -1]), spans, width, in_band)


def sorted_spans(
    spans: Tensor | npt.ArrayLike, num_types: int, seq: int, max_span_length: int | None = None, ordered: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct spans without padding, sorted; arguments and errors as in :func:`span_positives`.

    Returns:
        int64 ``[number of spans]``, text * types + type; and ``[number of spans, 2]``, first and last token.
    """
    spans = _integers("spans", spans, "[batch, count, 3], (type, first token, last token)", 3)
    kind, first, last = spans[spans[..., 0] != -1].T
    text = np.nonzero(spans[..., 0] != -1)[0]
    longest = seq if max_span_length is None else max_span_length
    fits = (kind >= 0) & (kind < num_types) & (last - first < longest) & (first <= last if ordered else True)
    fits &= (first >= 0) & (first < seq) & (last >= 0) & (last < seq)
    if not fits.all():
        at = np.argmin(fits)
        raise ValueError(
            f"span (type, first token, last token) {(int(kind[at]), int(first[at]), int(last[at]))} of text "
            f"{int(text[at])} is outside the logits of {num_types} types, {seq} tokens and spans of at most {longest}"
        )
    known = np.unique(np.stack([text * num_types + kind, first, last], axis=1), axis=0)
    return known[:, 0], known[:, 1:]


def _flat_places(positives, rows, classes):
    """``[count, 2]`` (row, class) -> sorted distinct row * classes + class, numpy int64; checks them."""
    positives = _integers("positives", positives, "[count, 2], (row, class)", 2)
    positives = positives[positives[:, 0] != -1]
    outside = ((positives < 0) | (positives >= (rows, classes))).any(axis=1)
    if outside.any():
        raise ValueError(
            f"positive (row, class) {tuple(positives[outside][0].tolist())} is outside the logits, "
            f"which have {rows} rows and {classes} classes"
        )
    return np.unique(positives[:, 0] * classes + positives[:, 1])


def _integers(name, given, expected, axes):
    """An int64 array with ``axes`` axes, the last of that size too; ``expected`` is for the message."""
    array = given.numpy() if isinstance(given, Tensor) else np.asarray(given)
    if array.ndim != axes or array.shape[-1] != axes or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be integers {expected}, got {array.dtype} {list(array.shape)}")
    return array.astype(np.int64)


def _without_fetching(logits, spans, width, in_band):
    """:func:`span_crossentropy` of logits ``[batch, types, classes]``, computed entirely on the device."""
    batch, types, classes = logits.shape
    kind, first, last = spans.unbind(axis=2)  # [batch, count] each
    equal = (spans.unsqueeze(1) == spans.unsqueeze(2)).all(axis=-1).astype("int32")  # [batch, count, count]
    counts = (paddle.tril(equal, -1).sum(axis=-1) == 0) & (kind >= 0)  # neither padding nor equal to an earlier span
    index = kind * classes + first * width + (last - first if in_band else last)
    index = index + paddle.arange(batch, dtype=index.dtype).unsqueeze(1) * (types * classes)
    flat, places = logits.reshape([-1]), (index * counts.astype(index.dtype)).reshape([-1])  # 0 for padding
    gathered = paddle.gather(flat, places)
    negatives = paddle.scatter_nd_add(flat, places.unsqueeze(1), counts.astype(flat.dtype).reshape([-1]) * EXCLUDED)
    of_type = (kind.unsqueeze(1) == paddle.arange(types, dtype=kind.dtype).unsqueeze(1)) & counts.unsqueeze(1)
    scores = -gathered.reshape([batch, 1, -1]).expand(of_type.shape)  # [batch, types, count]
    positives = paddle.where(of_type, scores, paddle.full_like(scores, EXCLUDED))
    return F.softplus(logsumexp(negatives.reshape(logits.shape))) + F.softplus(logsumexp(positives))


def _segment_logsumexp(x, segments):
    """log(sum(exp(x))) over the entries of each segment; ``segments`` counts 0, 0, ..., 1, ... without gaps."""
    largest = paddle.geometric.segment_max(x.detach(), segments)
    shifted = paddle.exp(x - paddle.gather(largest, segments))
    return paddle.log(paddle.geometric.segment_sum(shifted, segments)) + largest


def logsumexp(x: Tensor) -> Tensor:
    """log(sum(exp(x))) over the last axis, faster on CPU than paddle.logsumexp."""
    largest = x.detach().max(axis=-1, keepdim=True)
    shifted = paddle.exp(paddle.clip(x - largest, min=_SMALLEST_EXPONENT))
    return paddle.log(shifted.sum(axis=-1)) + largest.squeeze(-1)
