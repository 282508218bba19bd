"""The NER model: RoFormer and a GlobalPointer head."""

from paddle_rope.global_pointer import EfficientGlobalPointer, GlobalPointer, sparse_multilabel_categorical_crossentropy
from paddle_rope.roformer import RoFormerConfig, RoFormerModel, RoFormerPretrainedModel

SPAN_HEADS = {"efficient": EfficientGlobalPointer, "dense": GlobalPointer}


class NerConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with the span head and its types.

    Args:
        types: names of the entity types, in the order of the head's outputs.
        span_head: ``"efficient"`` or ``"dense"``.
        head_size: size of the head's queries and keys.
        max_length: longest text, in tokens, that the model was trained for.

    Raises:
        ValueError: ``span_head`` is unknown.
    """

    model_type = "paddle_rope_ner"

    def __init__(self, types=(), span_head="efficient", head_size=64, max_length=512, **kwargs):
        super().__init__(**kwargs)
        if span_head not in SPAN_HEADS:
            raise ValueError(f"span_head must be one of {', '.join(SPAN_HEADS)}, got {span_head!r}")
        self.types = list(types)
        self.span_head = span_head
        self.head_size = head_size
        self.max_length = max_length


class NerModel(RoFormerPretrainedModel):
    """Scores every span of a text for every type.

    Args:
        config: :class:`NerConfig`.
    """

    config_class = NerConfig

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        self.head = SPAN_HEADS[config.span_head](config.hidden_size, len(config.types), config.head_size)

    def forward(self, input_ids, attention_mask, token_mask, label_indices=None):
        """Score a batch.

        Args:
            input_ids: int64 ``[batch, seq]``.
            attention_mask: bool ``[batch, seq]``, False at padding.
            token_mask: bool ``[batch, seq]``, True where the token stands for characters of the text.
            label_indices: int64 ``[entities, 2]``, for an entity of type t in tokens i..j of text b the pair
                (b * types + t, i * seq + j); (-1, -1) is padding.

        Returns:
            Logits ``[batch, types, seq, seq]``; with ``label_indices`` the pair (loss, logits), the loss
            being the mean over texts and types.
        """
        logits = self.head(self.roformer(input_ids, attention_mask), token_mask)
        if label_indices is None:
            return logits
        spans = logits.reshape([*logits.shape[:2], -1])
        return sparse_multilabel_categorical_crossentropy(spans, label_indices).mean(), logits
