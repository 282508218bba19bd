"""Exported models for tests."""

import importlib.util

import paddle

from tests.helpers.verbs import verb

# paddle2onnx wants Paddle 3, and has no wheel for Python 3.13
HAS_ONNX = importlib.util.find_spec("paddle2onnx") is not None and not paddle.__version__.startswith("2.")
FORMATS = ("onnx", "paddle") if HAS_ONNX else ("paddle",)


def export(output, format, *models):
    """Export models by the verb; returns ``output``."""
    words = [*map(str, models), "--output", str(output), "--format", format]
    assert verb("export").main(words) == 0
    return output
