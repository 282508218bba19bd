"""Figures of matplotlib as small PNGs."""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

COLORS = 256  # of the palette


def png(figure):
    """The bytes of a ``matplotlib.figure.Figure`` drawn as PNG, without a display."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = io.BytesIO()
    Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(COLORS).save(image, "png", optimize=True)
    return image.getvalue()
