"""Loss for choosing any number of classes out of many."""

import paddle
import paddle.nn.functional as F

EXCLUDED = -1e9  # a float32 score that counts for nothing beside any other
_SMALLEST_EXPONENT = -40.0  # exp of it is lost in a float32 sum; smaller ones underflow, which is slow on CPU


def multilabel_categorical_crossentropy(logits, labels):
    r"""log(1 + sum_{n in negatives} exp(s_n)) + log(1 + sum_{p in positives} exp(-s_p)).

    Softmax cross-entropy for several positive classes (Su, https://kexue.fm/archives/7359): every positive score is
    pushed above 0 and every negative one below, with no weighting between few positives and many negatives.
    Computed by logsumexp in float32, so it is finite for scores of any size.

    Args:
        logits: ``[..., classes]``. For GlobalPointer flatten the last two axes: the classes are the spans.
        labels: same shape, bool or 0/1.

    Returns:
        float32 (float64 for float64 logits) ``[...]``, one loss for each row; take the mean.

    Raises:
        ValueError: the shapes differ.
    """
    if logits.shape != labels.shape:
        raise ValueError(f"logits {list(logits.shape)} and labels {list(labels.shape)} must have the same shape")
    if logits.dtype != paddle.float64:
        logits = logits.astype("float32")
    with paddle.amp.auto_cast(enable=False):  # O2 would make EXCLUDED a float16, which is infinite
        positive = labels.astype("bool")
        excluded = paddle.full_like(logits, EXCLUDED)
        negatives = _logsumexp(paddle.where(positive, excluded, logits))
        positives = _logsumexp(paddle.where(positive, -logits, excluded))
        return F.softplus(negatives) + F.softplus(positives)  # softplus(logsumexp(x)) = log(1 + sum exp(x))


def _logsumexp(x):
    """log(sum(exp(x))) over the last axis, faster on CPU than paddle.logsumexp (tools/benchmark_layers.py)."""
    largest = x.detach().max(axis=-1, keepdim=True)
    shifted = paddle.exp(paddle.clip(x - largest, min=_SMALLEST_EXPONENT))
    return paddle.log(shifted.sum(axis=-1)) + largest.squeeze(-1)
