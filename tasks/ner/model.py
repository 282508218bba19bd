"""The NER model: RoFormer and a GlobalPointer head."""

from numbers import Real

from paddle_rope.global_pointer import (
    EfficientGlobalPointer,
    GlobalPointer,
    decode_spans,
    span_positives,
    sparse_multilabel_categorical_crossentropy,
)
from paddle_rope.global_pointer.heads import check_max_span_length
from paddle_rope.roformer import RoFormerConfig, RoFormerModel, RoFormerPretrainedModel

SPAN_HEADS = {"efficient": EfficientGlobalPointer, "dense": GlobalPointer}


class NerConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with the span head and its types.

    Args:
        types: names of the entity types, in the order of the head's outputs.
        span_head: ``"efficient"`` or ``"dense"``.
        head_size: size of the head's queries and keys.
        max_length: longest text, in tokens, that the model was trained for.
        max_span_length: longest entity, in tokens, that is scored, which makes the head linear in the length of the
            text; None for any length.
        thresholds: the logit above which a span is an entity, one number or one for each type.
        span_rope: rotate the head's queries and keys; False for comparisons.
        allow_overlap: whether entities may overlap; else the one that scores highest is taken.

    Raises:
        ValueError: ``span_head`` is unknown, ``max_span_length`` is not a positive integer, or the thresholds are no
            numbers or not one for each type.
    """

    model_type = "paddle_rope_ner"

    def __init__(
        self,
        types=(),
        span_head="efficient",
        head_size=64,
        max_length=512,
        max_span_length=None,
        thresholds=0.0,
        span_rope=True,
        allow_overlap=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if span_head not in SPAN_HEADS:
            raise ValueError(f"span_head must be one of {', '.join(SPAN_HEADS)}, got {span_head!r}")
        check_max_span_length(max_span_length)
        each = thresholds if isinstance(thresholds, (list, tuple)) else [thresholds] * len(types)
        if len(each) != len(types) or not all(isinstance(x, Real) and not isinstance(x, bool) for x in each):
            raise ValueError(f"thresholds must be a number or one for each of {len(types)} types, got {thresholds!r}")
        self.types = list(types)
        self.span_head = span_head
        self.head_size = head_size
        self.max_length = max_length
        self.max_span_length = max_span_length
        self.thresholds = thresholds
        self.span_rope = span_rope
        self.allow_overlap = allow_overlap


class NerModel(RoFormerPretrainedModel):
    """Scores every span of a text for every type.

    Args:
        config: :class:`NerConfig`.
    """

    config_class = NerConfig

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        self.head = SPAN_HEADS[config.span_head](
            config.hidden_size, len(config.types), config.head_size, config.span_rope, config.max_span_length
        )

    def forward(self, input_ids, attention_mask, token_mask, labels=None):
        """Score a batch.

        Args:
            input_ids: int64 ``[batch, seq]``.
            attention_mask: bool ``[batch, seq]``, False at padding.
            token_mask: bool ``[batch, seq]``, True where the token stands for characters of the text.
            labels: int64 ``[batch, entities, 3]``, (type, first token, last token) of the entities; type -1 is padding.

        Returns:
            Logits of the head, for :meth:`decode`; with ``labels`` the pair (loss, logits), the loss being the mean
            over texts and types.
        """
        logits = self.head(self.roformer(input_ids, attention_mask), token_mask)
        if labels is None:
            return logits
        batch, types, seq, _ = logits.shape
        positives = span_positives(labels, types, seq, self.config.max_span_length)
        return sparse_multilabel_categorical_crossentropy(logits.reshape([batch, types, -1]), positives).mean(), logits

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
        return len(self.config.types) * length * (self.config.max_span_length or length)
