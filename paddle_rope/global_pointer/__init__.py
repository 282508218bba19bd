"""GlobalPointer: heads, losses, decoding. Names are loaded when they are first asked for; decoding needs no paddle."""

from typing import TYPE_CHECKING

from paddle_rope.imports import lazy_names

if TYPE_CHECKING:  # the same names for type checkers
    from paddle_rope.global_pointer.decoding import ScoredSpan, decode_spans
    from paddle_rope.global_pointer.heads import MASKED_LOGIT, EfficientGlobalPointer, GlobalPointer
    from paddle_rope.global_pointer.losses import (
        multilabel_categorical_crossentropy,
        span_positives,
        sparse_multilabel_categorical_crossentropy,
    )
    from paddle_rope.global_pointer.span_loss import span_crossentropy

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "decoding": "ScoredSpan decode_spans",
        "heads": "MASKED_LOGIT EfficientGlobalPointer GlobalPointer",
        "losses": "multilabel_categorical_crossentropy span_positives sparse_multilabel_categorical_crossentropy",
        "span_loss": "span_crossentropy",
    },
)
