"""Named entity recognition with RoFormer and GlobalPointer."""

import importlib

__all__ = ["NerPredictor"]


def __getattr__(name):
    # loaded when first asked for: the readers and the corpus generator do without paddle
    if name == "NerPredictor":
        return importlib.import_module("tasks.ner.prediction.predictor").NerPredictor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
