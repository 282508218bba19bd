"""GlobalPointer: heads, losses, decoding. Names load at first use; decoding needs no paddle."""

from typing import TYPE_CHECKING

from paddle_rope.imports import lazy_names

if TYPE_CHECKING:  # the same names for type checkers
    from paddle_rope.global_pointer.decoding import ScoredSpan, decode_spans
    from paddle_rope.global_pointer.heads import MASKED_LOGIT, EfficientGlobalPointer, GlobalPointer
    from paddle_rope.global_pointer.losses import (
        multilabel_categorical_crossentropy,
        span_crossentropy,
        span_positives,
        sparse_multilabel_categorical_crossentropy,
    )

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "decoding": "ScoredSpan decode_spans",
        "heads": "MASKED_LOGIT EfficientGlobalPointer GlobalPointer",
        "losses": "multilabel_categorical_crossentropy span_crossentropy span_positives "
        "sparse_multilabel_categorical_crossentropy",
    },
)
