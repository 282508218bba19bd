"""Matplotlib figures as small PNGs, and the table and picture of a run's epochs."""

import io
import math
import statistics

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from paddle_rope.tasks.common.files import write_files
from paddle_rope.tasks.common.reports.tables import as_csv, keys_of

COLORS = 256  # of the palette
EPOCH = "progress_or_epoch"  # in PaddleNLP's log
BLUE, ORANGE, GREEN, GRAY = "#1f5fa8", "#c8560a", "#2a8a4a", "#666666"


def new_figure(width, height, rows=1, columns=1, **options):
    """A figure of a size in inches and its panels with a grid; ``options`` go to ``Figure.subplots``."""
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(rows, columns, **options)
    for axes in figure.axes:
        axes.grid(alpha=0.3)
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


# ---- the epochs of a run: training loss and dev scores as CSV and as a picture


def epoch_rows(history, scores):
    """A dict per epoch of ``epoch``, ``step``, ``training loss`` (the mean of the values logged in it; "" if there are
    none) and the available dev ``scores``, from the ``log_history`` of the trainer's state."""
    rows, losses = {}, {}
    for entry in history:
        epoch = max(1, math.ceil(entry[EPOCH] - 1e-6))
        row = rows.setdefault(epoch, {"epoch": epoch, "step": 0, "training loss": ""})
        row["step"] = entry["step"]
        if "loss" in entry:
            losses.setdefault(epoch, []).append(entry["loss"])
            row["training loss"] = statistics.fmean(losses[epoch])
        row.update({f"dev {name}": entry[f"eval_{name}"] for name in scores if f"eval_{name}" in entry})
    return list(rows.values())


def write_epochs(folder, history, scores):
    """Write the table and the picture into ``folder``; the arguments are as for :func:`epoch_rows`."""
    rows = epoch_rows(history, scores)
    write_files(folder, {"epochs.csv": as_csv(rows), "epochs.png": draw_epochs(rows, history)})


def draw_epochs(rows, history):
    """The bytes of a PNG: training loss on the left and dev scores, if there are any, on the right, by epoch."""
    shown = [name for name in keys_of(rows) if name.startswith("dev ")]
    columns = 2 if shown else 1
    figure, (panels,) = new_figure(5 * columns, 4, 1, columns, squeeze=False)
    logged = [entry for entry in history if "loss" in entry]
    panels[0].plot([entry[EPOCH] for entry in logged], [entry["loss"] for entry in logged], lw=1)
    panels[0].set_ylabel("training loss")
    for name in shown:
        known = [row for row in rows if name in row]
        panels[1].plot([row["epoch"] for row in known], [row[name] for row in known], marker="o", ms=4, label=name)
    if shown:
        panels[1].legend()
    for axes in panels:
        axes.set_xlabel("epoch")
    return png(figure)
