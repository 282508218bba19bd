"""The NER model: RoFormer and a GlobalPointer head."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import paddle

from paddle_rope.global_pointer import EfficientGlobalPointer, GlobalPointer, decode_spans
from paddle_rope.global_pointer.heads import WIDEST_BAND
from paddle_rope.option_kinds import NAMES, TRUTH, choice, either, integer, list_of, number, one_of, option, share
from paddle_rope.roformer import RoFormerConfig, RoFormerModel, RoFormerPretrainedModel
from tasks.common.inference import evaluated
from tasks.ner.feature_embedding import FeatureEmbedding, check_sizes
from tasks.ner.features import UNKNOWN
from tasks.ner.spans import check_of_types, scores_of_text

SPAN_HEADS = {"efficient": EfficientGlobalPointer, "dense": GlobalPointer}
_SIZE, _LENGTH, _LENGTH_OR_NONE = integer(1, 2**16), integer(1, 10**9), integer(1, 10**9, optional=True)
_OBJECT_OR_NONE = one_of("an object", dict, optional=True)
_OF_TYPES = either(number(), list_of(number(), 10**6))


@dataclass
class NerConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with the span head and its types."""

    types: list[str] = option([], "names of the entity types, in the order of the head's outputs", NAMES)
    span_head: str = option("efficient", "`efficient` or `dense` GlobalPointer", choice(*SPAN_HEADS))
    head_size: int = option(64, "width of the queries and keys of the span head", _SIZE)
    max_tokens: int = option(512, "longest text, in characters, that its training took", _LENGTH)
    max_span_length: int | None = option(
        None, "longest entity in tokens; empty: any", integer(1, WIDEST_BAND, optional=True)
    )
    thresholds: float | list = option(
        0.0, "the logit above which a span is an entity, one number or one per type", _OF_TYPES
    )
    temperatures: float | list = option(
        1.0, "a span's probability is sigmoid(logit / temperature); one number or one per type",
        _OF_TYPES,
    )  # fmt: skip
    span_rope: bool = option(True, "RoPE in the span head; `false` for comparisons", TRUTH)
    allow_overlap: bool = option(True, "may entities overlap; else the one that scores highest is taken", TRUTH)
    features: dict | None = option(
        None, "sizes of the word features; empty: none", one_of("an object", dict, optional=True)
    )
    character_dropout: float = option(0.0, "share of characters that training hides", share())
    feature_dropout: float = option(0.0, "share of feature values that training hides", share())
    unk_token_id: int | None = option(None, "id of [UNK], for `character_dropout`", integer(0, 2**24, optional=True))
    window_tokens: int | None = option(
        None,
        "tokens that prediction reads at once, a length that training covered well; empty: `max_tokens`",
        _LENGTH_OR_NONE,
    )
    longest_text: int | None = option(None, "tokens of the longest training text", _LENGTH_OR_NONE)
    longest_entity: int | None = option(None, "tokens of the longest training entity", _LENGTH_OR_NONE)

    model_type: ClassVar[str] = "paddle_rope_ner"
    RENAMED: ClassVar[dict[str, str]] = {"max_length": "max_tokens"}  # names of version 0.1

    def __post_init__(self):
        self.types = list(self.types) if isinstance(self.types, tuple) else self.types
        super().__post_init__()
        check_of_types("thresholds", self.thresholds, len(self.types))
        check_of_types("temperatures", self.temperatures, len(self.types), positive=True)
        if self.features is not None:
            check_sizes(self.features)
        if self.character_dropout and self.unk_token_id is None:
            raise ValueError("character_dropout needs unk_token_id, the id of [UNK]")


class NerModel(RoFormerPretrainedModel):
    """Scores every span of a text for every type."""

    config_class = NerConfig

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        if config.features is not None:
            self.feature_embedding = FeatureEmbedding(config.features, config.embedding_size)
        self.head = SPAN_HEADS[config.span_head](
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
            token_mask: bool ``[batch, seq]``, True where the token stands for characters of the text.
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
