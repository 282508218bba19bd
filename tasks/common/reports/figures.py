"""Figures of matplotlib as small PNGs."""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

COLOURS = 256  # of the palette


def png(figure):
    """The bytes of a ``matplotlib.figure.Figure`` drawn as PNG, without a display."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = io.BytesIO()
    Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(COLOURS).save(image, "png", optimize=True)
    return image.getvalue()


def time_and_memory_png(figure, panels, legend_columns):
    """The PNG of a figure of seconds (upper panels) and GB (lower panels) against length, with what they share.

    Args:
        figure: ``matplotlib.figure.Figure`` with constrained layout.
        panels: array ``[2, columns]`` of its axes, drawn; the first one has the labels of the legend.
        legend_columns: of the legend under the panels.
    """
    panels[0, 0].set_ylabel("seconds")
    panels[1, 0].set_ylabel("peak memory of the process, GB")
    for axes in panels.flat:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=legend_columns)
    return png(figure)
