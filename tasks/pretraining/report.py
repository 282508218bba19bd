"""What a run leaves of its stages: a table as CSV and Markdown, and a plot."""

import numpy as np

from tasks.common.files import write_files
from tasks.common.reports.tables import as_csv, as_markdown

COLUMNS = (
    "stage", "max_tokens", "batch_size", "steps", "million_tokens", "seconds_per_step", "dev_loss", "dev_accuracy"
)  # fmt: skip
DIGITS = {"million_tokens": 2, "seconds_per_step": 3, "dev_loss": 4, "dev_accuracy": 4}


def stage_rows(stages, ends, history, batches_per_step):
    """A dict with ``COLUMNS`` of each of ``stages``, whose last steps are ``ends``, from the ``log_history`` of the
    trainer's state."""
    rows = []
    for number, (stage, end) in enumerate(zip(stages, ends), 1):
        dev = next(entry for entry in reversed(history) if "eval_loss" in entry and entry["step"] == end)
        tokens = stage.max_tokens * stage.batch_size * stage.steps * batches_per_step
        values = (number, *stage, tokens / 1e6, dev["eval_seconds_per_step"], dev["eval_loss"], dev["eval_accuracy"])
        rows.append(dict(zip(COLUMNS, values)))
    return rows


def write_report(folder, rows, history):
    """Write the table and the plot into ``folder``; returns the table in Markdown."""
    rounded = [{**row, **{name: round(row[name], digits) for name, digits in DIGITS.items()}} for row in rows]
    table = as_markdown(rounded, COLUMNS)
    write_files(folder, {"stages.csv": as_csv(rows, COLUMNS), "stages.md": table, "stages.png": draw(rows, history)})
    return table


def draw(rows, history):
    """Loss above, accuracy below, against steps; each stage a strip. PNG, bytes."""
    from tasks.common.reports.figures import new_figure, png

    figure, panels = new_figure(10, 7, 2, 1, sharex=True)
    ends = np.cumsum([row["steps"] for row in rows])
    train = [entry for entry in history if "loss" in entry]
    for axes, name in zip(panels, ("loss", "accuracy")):
        axes.plot([e["step"] for e in train], [e[name] for e in train], lw=1, label="training")
        dev = [row[f"dev_{name}"] for row in rows]
        axes.plot(ends, dev, "o", clip_on=False, zorder=3, label="held-out documents, end of the stage")
        for number, (row, end) in enumerate(zip(rows, ends)):
            start = end - row["steps"]
            if number % 2:
                axes.axvspan(start, end, color="0.92", zorder=0)
            if name == "loss":
                text = f"{row['max_tokens']} x {row['batch_size']}"
                height = 1.01 + 0.06 * (number % 2)  # the names of short stages would run into each other
                axes.text((start + end) / 2, height, text, ha="center", transform=axes.get_xaxis_transform())
        axes.set_ylabel(f"{name} of hidden tokens")
        axes.set_xlim(0, ends[-1])
        axes.legend()
    panels[0].set_title("stages: length x batch size", pad=36)
    panels[1].set_xlabel("step")
    return png(figure)
