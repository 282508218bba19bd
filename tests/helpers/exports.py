"""Exported models for tests."""

import paddle

from tests.helpers.verbs import verb

# paddle2onnx wants Paddle 3
FORMATS = ("paddle",) if paddle.__version__.startswith("2.") else ("onnx", "paddle")


def export(output, format, *models):
    """Export models by the verb; returns ``output``."""
    words = [*map(str, models), "--output", str(output), "--format", format]
    assert verb("export").main(words) == 0
    return output
