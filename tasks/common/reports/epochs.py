"""What a run leaves of its epochs: training loss and dev scores as CSV, Markdown and a picture."""

import math
import statistics

from tasks.common.files import write_files
from tasks.common.reports.tables import as_csv, as_markdown

EPOCH = "progress_or_epoch"  # in PaddleNLP's log


def epoch_rows(history, scores):
    """For each epoch a dict of ``epoch``, ``step``, ``training loss`` (the mean of what was logged within it; "" where
    nothing was) and the dev ``scores`` that there are, from the ``log_history`` of the trainer's state."""
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
    columns = list(dict.fromkeys(name for row in rows for name in row))
    rounded = [{name: round(one, 4) if isinstance(one, float) else one for name, one in row.items()} for row in rows]
    tables = {"epochs.csv": as_csv(rows, columns), "epochs.md": as_markdown(rounded, columns)}
    write_files(folder, {**tables, "epochs.png": _draw(rows, history)})


def _draw(rows, history):
    """Training loss on the left, dev scores, if there are such, on the right, against epochs. PNG, bytes."""
    from tasks.common.reports.figures import new_figure, png

    shown = list(dict.fromkeys(name for row in rows for name in row if name.startswith("dev ")))
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
