from paddle_rope.global_pointer.decoding import ScoredSpan, decode_spans
from paddle_rope.global_pointer.heads import MASKED_LOGIT, EfficientGlobalPointer, GlobalPointer
from paddle_rope.global_pointer.losses import (
    multilabel_categorical_crossentropy,
    span_positives,
    sparse_multilabel_categorical_crossentropy,
)

__all__ = [
    "MASKED_LOGIT",
    "EfficientGlobalPointer",
    "GlobalPointer",
    "ScoredSpan",
    "decode_spans",
    "multilabel_categorical_crossentropy",
    "span_positives",
    "sparse_multilabel_categorical_crossentropy",
]
