"""Named entity recognition with RoFormer and GlobalPointer."""

from typing import TYPE_CHECKING

from paddle_rope.machine import lazy_names

if TYPE_CHECKING:  # otherwise imported at first use: the readers and the corpus generator need no paddle
    from paddle_rope.tasks.ner.prediction.predictor import NerPredictor as NerPredictor

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
