"""Named entity recognition with RoFormer and GlobalPointer. Names load at first use: readers of data need no paddle."""

from typing import TYPE_CHECKING

from paddle_rope.machine import lazy_names

if TYPE_CHECKING:
    from paddle_rope.tasks.ner.prediction.predictor import NerPredictor as NerPredictor

__getattr__, __dir__, __all__ = lazy_names(__name__, {"prediction.predictor": ["NerPredictor"]})
