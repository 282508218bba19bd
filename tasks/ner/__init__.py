"""Named entity recognition with RoFormer and GlobalPointer."""

from paddle_rope.imports import lazy_names

# the readers and the corpus generator do without paddle
__getattr__, __dir__, __all__ = lazy_names(__name__, {"prediction.predictor": "NerPredictor"})
