"""The matching model: RoFormer that reads two texts as one sequence, or each text by itself."""

import paddle.nn.functional as F

from paddle_rope.precision import without_amp
from paddle_rope.roformer import RoFormerModel, RoFormerPretrainedModel
from paddle_rope.roformer.heads import ClassificationHead, pool
from tasks.common.inference import evaluated
from tasks.matching.config import TRIPLES, MatchingConfig
from tasks.matching.losses import cosent_loss, grade_loss, ranking_loss


class MatchingModel(RoFormerPretrainedModel):
    """Scores pairs of texts, or the candidates of triples."""

    config_class = MatchingConfig

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        if config.is_cross_encoder:
            self.head = ClassificationHead(config)
        self.init_weights()

    def represent(self, input_ids, attention_mask, token_type_ids=None):
        """What is known of each sequence by itself.

        Args:
            input_ids: int64 ``[rows, seq]``.
            attention_mask: bool ``[rows, seq]``, False at padding.
            token_type_ids: int64 ``[rows, seq]``, for a model with ``token_type_ids``.

        Returns:
            Of a bi-encoder vectors of length 1, float32 ``[rows, hidden]``; of a cross-encoder logits ``[rows]``.
        """
        hidden = self.roformer(input_ids, attention_mask, token_type_ids)
        pooled = pool(hidden, attention_mask, self.config.pooling)
        if self.config.is_cross_encoder:
            return self.head(pooled).squeeze(-1)
        with without_amp():
            return F.normalize(pooled.astype("float32"), axis=-1)

    def find_representations(self, batch):
        """:meth:`represent` of a batch of arrays, in evaluation mode: a float32 array."""
        return evaluated(self, batch, self.represent).astype("float32").numpy()

    def forward(self, input_ids, attention_mask, token_type_ids=None, labels=None):
        """Score a batch of examples.

        Args:
            input_ids, attention_mask, token_type_ids: as of :meth:`represent`. Each example has several sequences, and
                the rows are the first of all examples, then the second of all, and so on. A pair: (a, b) of a
                cross-encoder, a and b of a bi-encoder. A triple: (A, B), (A, C), and A, B, C.
            labels: ``[batch]``, as of :class:`tasks.matching.data.Example`.

        Returns:
            Logits or cosines ``[candidates, batch]``, one candidate of a pair and two of a triple; with ``labels`` the
            pair (loss, these).
        """
        config = self.config
        rows = self.represent(input_ids, attention_mask, token_type_ids)
        candidates = 2 if config.task == TRIPLES else 1
        if config.is_cross_encoder:
            scores = rows.reshape([candidates, -1])
        else:
            vectors = rows.reshape([1 + candidates, -1, rows.shape[-1]])
            scores = (vectors[:1] * vectors[1:]).sum(axis=-1)
        if labels is None:
            return scores
        if config.task == TRIPLES:
            scale = 1.0 if config.is_cross_encoder else config.scale
            return ranking_loss(scale * scores[0], scale * scores[1], labels), scores
        if config.is_cross_encoder:
            lowest, highest = config.grades
            return grade_loss(scores[0], (labels - lowest) / (highest - lowest)), scores
        return cosent_loss(scores[0], labels, config.scale), scores
