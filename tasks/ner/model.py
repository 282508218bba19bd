"""The NER model: RoFormer and a GlobalPointer head."""

import numpy as np
import paddle

from paddle_rope.choices import check_choice
from paddle_rope.global_pointer import EfficientGlobalPointer, GlobalPointer, decode_spans
from paddle_rope.global_pointer.heads import check_max_span_length
from paddle_rope.option_kinds import NAMES, TRUTH, integer
from paddle_rope.roformer import RoFormerConfig, RoFormerModel, RoFormerPretrainedModel
from tasks.common.inference import evaluated
from tasks.ner.feature_embedding import FeatureEmbedding, check_sizes
from tasks.ner.features.kinds import UNKNOWN
from tasks.ner.spans import check_lengths, check_of_types, scores_of_text

SPAN_HEADS = {"efficient": EfficientGlobalPointer, "dense": GlobalPointer}
_SIZE = integer(1, 2**16)


class NerConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with the span head and its types.

    Args:
        types: names of the entity types, in the order of the head's outputs.
        span_head: ``"efficient"`` or ``"dense"``.
        head_size: size of the head's queries and keys.
        max_tokens: longest text, in characters, that its training took.
        max_span_length: longest entity, in tokens, that is scored, which makes the head linear in the length of the
            text; None for any length.
        thresholds: the logit above which a span is an entity, one number or one for each type.
        temperatures: the probability of a span is sigmoid(logit / temperature); one number or one for each type.
        span_rope: rotate the head's queries and keys; False for comparisons.
        allow_overlap: whether entities may overlap; else the one that scores highest is taken.
        features: :attr:`tasks.ner.features.WordFeatures.sizes` of the features that stand beside the tokens; None for
            none.
        character_dropout: in training, share of the text's tokens that become ``[UNK]``.
        feature_dropout: in training, share of the values of the features' columns that become unknown.
        unk_token_id: id of ``[UNK]``, for ``character_dropout``.
        window_tokens: tokens that prediction reads at once by default, a length that training covered well: see
            :func:`tasks.ner.lengths.window_length`; None for ``max_tokens``.
        longest_text, longest_entity: tokens of the longest training text and entity; None where that is not known.

    Raises:
        ValueError: ``span_head`` is unknown, ``max_span_length`` or another length is not a positive integer, the
            thresholds or temperatures are no numbers or not one for each type, the features are no sizes, or a dropout
            is not in [0, 1).
    """

    model_type = "paddle_rope_ner"

    def __init__(
        self,
        types=(),
        span_head="efficient",
        head_size=64,
        max_tokens=None,
        max_span_length=None,
        thresholds=0.0,
        temperatures=1.0,
        span_rope=True,
        allow_overlap=True,
        features=None,
        character_dropout=0.0,
        feature_dropout=0.0,
        unk_token_id=None,
        window_tokens=None,
        longest_text=None,
        longest_entity=None,
        **kwargs,
    ):
        max_length = kwargs.pop("max_length", 512)  # its name in models of version 0.1
        NAMES.check("types", types)
        _SIZE.check("head_size", head_size)
        for name, value in (("span_rope", span_rope), ("allow_overlap", allow_overlap)):
            TRUTH.check(name, value)
        super().__init__(**kwargs)
        check_choice("span_head", span_head, SPAN_HEADS)
        check_max_span_length(max_span_length)
        check_lengths(window_tokens=window_tokens, longest_text=longest_text, longest_entity=longest_entity)
        check_of_types("thresholds", thresholds, len(types))
        check_of_types("temperatures", temperatures, len(types), positive=True)
        if features is not None:
            check_sizes(features)
        for name, value in (("character_dropout", character_dropout), ("feature_dropout", feature_dropout)):
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be at least 0 and less than 1, got {value!r}")
        if character_dropout and unk_token_id is None:
            raise ValueError("character_dropout needs unk_token_id, the id of [UNK]")
        self.types = list(types)
        self.span_head = span_head
        self.head_size = head_size
        self.max_tokens = max_length if max_tokens is None else max_tokens
        self.max_span_length = max_span_length
        self.thresholds = thresholds
        self.temperatures = temperatures
        self.span_rope = span_rope
        self.allow_overlap = allow_overlap
        self.features = features
        self.character_dropout = character_dropout
        self.feature_dropout = feature_dropout
        self.unk_token_id = unk_token_id
        self.window_tokens = window_tokens
        self.longest_text = longest_text
        self.longest_entity = longest_entity


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
