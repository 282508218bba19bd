"""Losses on scores of pairs: by order alone, and by 0/1 or a grade."""

import paddle
import paddle.nn.functional as F

from paddle_rope.precision import without_amp

EXCLUDED = -1e9  # a float32 exponent that counts for nothing in a sum


def cosent_loss(cosines, labels, scale=20.0):
    r"""log(1 + sum over pairs i, j with label_i > label_j of exp(scale (cos_j - cos_i))).

    CoSENT (Su, https://kexue.fm/archives/8847): of any two examples of the batch the one with the higher label is to
    have the higher cosine. Only the order of the labels counts, so that 0/1 and grades are the same to it.

    Args:
        cosines: float ``[batch]``.
        labels: ``[batch]``, any numbers.
        scale: how steeply a wrong order counts, the inverse of a temperature.

    Returns:
        float32 (float64 for float64 cosines) scalar; 0 where all labels are equal.
    """
    with without_amp():  # which would make EXCLUDED a float16
        cosines = _at_least_float32(cosines)
        differences = scale * (cosines.unsqueeze(0) - cosines.unsqueeze(1))  # [i, j]: scale (cos_j - cos_i)
        is_ordered = labels.unsqueeze(1) > labels.unsqueeze(0)
        exponents = paddle.where(is_ordered, differences, paddle.full_like(differences, EXCLUDED))
        return F.softplus(paddle.logsumexp(exponents))  # softplus(logsumexp(x)) = log(1 + sum exp(x))


def ranking_loss(first, second, first_is_closer):
    """Mean of log(1 + exp(s_farther - s_closer)): the closer of two candidates is to have the higher score.

    ``first`` and ``second`` are float ``[batch]``, the scores s of the two candidates; ``first_is_closer`` is 1 where
    the first is the closer one, 0 where the second is. The scalar is float32, or float64 for float64 scores.
    """
    with without_amp():
        difference = _at_least_float32(first) - _at_least_float32(second)
        return F.softplus((1 - 2 * first_is_closer.astype(difference.dtype)) * difference).mean()


def grade_loss(logits, shares):
    """Mean of - y log p - (1 - y) log(1 - p), with p = 1 / (1 + exp(-logit)).

    ``shares`` are y, ``[batch]``, from 0 to 1: the label itself, or a grade as its share of the way from the lowest to
    the highest. The scalar is float32, or float64 for float64 logits.
    """
    with without_amp():
        logits = _at_least_float32(logits)
        return (F.softplus(logits) - shares.astype(logits.dtype) * logits).mean()


def _at_least_float32(scores):
    return scores if scores.dtype == paddle.float64 else scores.astype("float32")
