"""Figures of matplotlib as small PNGs."""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

COLORS = 256  # of the palette
BLUE, ORANGE, GREEN, GRAY = "#1f5fa8", "#c8560a", "#2a8a4a", "#666666"


def new_figure(width, height, rows=1, columns=1, grid="both", **options):
    """A figure of a size in inches and its panels with a grid; ``options`` go to ``Figure.subplots``."""
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(rows, columns, **options)
    for axes in figure.axes:
        axes.grid(axis=grid, alpha=0.3)
    return figure, panels


def png(figure):
    """The bytes of a ``matplotlib.figure.Figure`` drawn as PNG, without a display."""
    image = io.BytesIO()
    Image.fromarray(pixels(figure)).quantize(COLORS).save(image, "png", optimize=True)
    return image.getvalue()


def pixels(figure):
    """A ``matplotlib.figure.Figure`` drawn without a display: uint8 array ``[height, width, 3]``."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
