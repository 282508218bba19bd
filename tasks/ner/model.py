"""The NER model: RoFormer and a GlobalPointer head."""

import numpy as np
import paddle

from paddle_rope.global_pointer import EfficientGlobalPointer, GlobalPointer, decode_spans
from paddle_rope.roformer import RoFormerModel, RoFormerPretrainedModel
from tasks.common.inference import evaluated
from tasks.ner.config import DENSE, EFFICIENT, NerConfig
from tasks.ner.feature_embedding import FeatureEmbedding
from tasks.ner.features import UNKNOWN
from tasks.ner.spans import scores_of_text

HEADS = {EFFICIENT: EfficientGlobalPointer, DENSE: GlobalPointer}


class NerModel(RoFormerPretrainedModel):
    """Scores every span of a text for every type."""

    config_class = NerConfig

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        if config.features is not None:
            self.feature_embedding = FeatureEmbedding(config.features, config.embedding_size)
        self.head = HEADS[config.span_head](
            config.hidden_size, len(config.types), config.head_size, config.span_rope, config.max_span_length
        )
        self.init_weights()

    def _init_weights(self, layer):
        super()._init_weights(layer)
        if isinstance(layer, FeatureEmbedding):  # after the layers inside it
            layer.init_projection()

    def forward(self, input_ids, attention_mask, token_mask, columns=None, flags=None, labels=None):
        """Score a batch.

        Args:
            input_ids: int64 ``[batch, seq]``.
            attention_mask: bool ``[batch, seq]``, False at padding.
            token_mask: bool ``[batch, seq]``, True where the token has characters of the text.
            columns, flags: as of :class:`~tasks.ner.feature_embedding.FeatureEmbedding`, for a model with features.
            labels: int64 ``[batch, entities, 3]``, (type, first token, last token) of the entities; type -1 is padding.

        Returns:
            Logits of the head, for :meth:`decode`; with ``labels`` the loss, the mean over texts and types.
        """
        config = self.config
        if self.training and config.character_dropout:
            is_hidden = token_mask & _drawn(input_ids, config.character_dropout)
            input_ids = paddle.where(is_hidden, paddle.full_like(input_ids, config.unk_token_id), input_ids)
        if self.training and config.feature_dropout and columns is not None:
            is_hidden = (columns > 0) & _drawn(columns, config.feature_dropout)
            columns = paddle.where(is_hidden, paddle.full_like(columns, UNKNOWN), columns)
        added = None if config.features is None else self.feature_embedding(columns, flags)
        hidden = self.roformer(input_ids, attention_mask, added_embeddings=added)
        if labels is None:
            return self.head(hidden, token_mask)
        return self.head.loss(hidden, labels, token_mask).mean()

    def find_spans(self, batch, thresholds=None):
        """Entities of a batch of arrays, named as the arguments of :meth:`forward`, in evaluation mode; as
        :meth:`decode`."""
        return self.decode(evaluated(self, batch), thresholds)

    def decode(self, logits, thresholds=None):
        """Entities of a batch of logits.

        Args:
            logits: as from :meth:`forward`.
            thresholds: instead of those of the configuration.

        Returns:
            For each text a list of :class:`~paddle_rope.global_pointer.ScoredSpan`.
        """
        thresholds = self.config.thresholds if thresholds is None else thresholds
        return decode_spans(logits, thresholds, banded=self.config.max_span_length is not None)

    def scores_of_text(self, length):
        """How many scores a text of ``length`` tokens has."""
        return scores_of_text(self.config, length)


def _drawn(x, probability):
    """bool of the shape of ``x``, each True with the given probability, by numpy's generator, as dropout on CPU: paddle
    2.6.2 does not restore its own generator when a run is resumed."""
    return paddle.to_tensor(np.random.rand(*x.shape) < probability)
