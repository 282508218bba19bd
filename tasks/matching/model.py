"""The matching model: RoFormer that reads two texts as one sequence, or each text by itself; and its losses."""

import paddle
import paddle.nn.functional as F

from paddle_rope.backend import at_least_float32, without_amp
from paddle_rope.global_pointer.losses import EXCLUDED
from paddle_rope.roformer import RoFormerModel, RoFormerPretrainedModel
from paddle_rope.roformer.heads import ClassificationHead, pool
from paddle_rope.tasks.matching.arguments import TRIPLES, MatchingConfig


class MatchingModel(RoFormerPretrainedModel):
    """Scores pairs of texts, or the candidates of triples."""

    config_class = MatchingConfig

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        if config.is_cross_encoder:
            self.head = ClassificationHead(config)
        self.init_weights()

    def forward(self, input_ids, attention_mask, token_type_ids=None, labels=None):
        """Vectors of length 1 (bi-encoder), float32 ``[rows, hidden]``, or logits (cross-encoder), ``[rows]``, for
        sequences ``[rows, seq]``; with ``labels`` of examples, ``[batch]``, the pair (loss, logits or cosines
        ``[candidates, batch]``).

        With labels, the rows are the first sequences of all examples, then their second ones, and so on. A pair has the
        sequence (a, b) for a cross-encoder, a and b for a bi-encoder; a triple has (A, B) and (A, C), or A, B and C.
        """
        config = self.config
        hidden = self.roformer(input_ids, attention_mask, token_type_ids)
        rows = pool(hidden, attention_mask, config.pooling)
        if config.is_cross_encoder:
            rows = self.head(rows).squeeze(-1)
        else:
            with without_amp():
                rows = F.normalize(rows.astype("float32"), axis=-1)
        if labels is None:
            return rows.astype("float32")
        candidates = 2 if config.task == TRIPLES else 1
        if config.is_cross_encoder:
            scores = rows.reshape([candidates, -1])
        else:
            vectors = rows.reshape([1 + candidates, -1, rows.shape[-1]])
            scores = (vectors[:1] * vectors[1:]).sum(axis=-1)
        if config.task == TRIPLES:
            scale = 1.0 if config.is_cross_encoder else config.scale
            return ranking_loss(scale * scores[0], scale * scores[1], labels), scores
        if config.is_cross_encoder:
            lowest, highest = config.grades
            return grade_loss(scores[0], (labels - lowest) / (highest - lowest)), scores
        return cosent_loss(scores[0], labels, config.scale), scores


def cosent_loss(cosines, labels, scale=20.0):
    r"""log(1 + sum over pairs i, j with label_i > label_j of exp(scale (cos_j - cos_i))).

    CoSENT (Su, https://kexue.fm/archives/8847): of any two examples in the batch, the one with the higher label should
    have the higher cosine. Only the order of the labels counts, so 0/1 labels and grades are treated alike; ``scale``
    sets how steeply a wrong order is penalized. The scalar is float32, or float64 for float64 cosines; it is 0 if all
    labels are equal.
    """
    with without_amp():  # AMP would make EXCLUDED a float16
        (cosines,) = at_least_float32(cosines)
        differences = scale * (cosines.unsqueeze(0) - cosines.unsqueeze(1))  # [i, j]: scale (cos_j - cos_i)
        is_ordered = labels.unsqueeze(1) > labels.unsqueeze(0)
        exponents = paddle.where(is_ordered, differences, paddle.full_like(differences, EXCLUDED))
        return F.softplus(paddle.logsumexp(exponents))  # softplus(logsumexp(x)) = log(1 + sum exp(x))


def ranking_loss(first, second, first_is_closer):
    """Mean of log(1 + exp(s_farther - s_closer)): the closer of two candidates should have the higher score.

    ``first`` and ``second`` are float ``[batch]``, the scores s of the two candidates; ``first_is_closer`` is 1 where
    the first is the closer one, 0 where the second is. The scalar is float32, or float64 for float64 scores.
    """
    with without_amp():
        first, second = at_least_float32(first, second)
        return F.softplus((1 - 2 * first_is_closer.astype(first.dtype)) * (first - second)).mean()


def grade_loss(logits, shares):
    """Mean of - y log p - (1 - y) log(1 - p), with p = 1 / (1 + exp(-logit)).

    ``shares`` are y, ``[batch]``, from 0 to 1: the label itself, or a grade scaled so that the lowest is 0 and the
    highest 1. The scalar is float32, or float64 for float64 logits.
    """
    with without_amp():
        (logits,) = at_least_float32(logits)
        return (F.softplus(logits) - shares.astype(logits.dtype) * logits).mean()
