"""Exported models for tests."""

import export_ner
import paddle

# paddle2onnx wants Paddle 3
FORMATS = ("paddle",) if paddle.__version__.startswith("2.") else ("onnx", "paddle")


def export(output, format, *models):
    """Export models by the tool; returns ``output``."""
    assert export_ner.main([*map(str, models), "--output", str(output), "--format", format]) == 0
    return output
