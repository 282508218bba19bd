#!/usr/bin/env python
"""Train small Performers with and without RoPE on characters and draw their loss curves (arXiv 2104.09864, 4.4).

    python tools/compare_performer.py CONFIG.yaml [--key value ...]
    python tools/compare_performer.py --report OUTPUT_DIR

Rows: rope (RoPE in the numerator of the attention, as in eq. 19 of the paper), none (no position) and learned (learned
absolute positions added to the embeddings, as a public PyTorch Performer language model has them).
Attention is causal and linear with FAVOR+ features (arXiv 2009.14794), drawn once for each layer and not drawn anew.

CONFIG.yaml and --key take the keys of tasks/language_model/arguments.py and num_random_features; --rows and --seeds
choose cells. The same command in a second process takes cells that the first has not begun; after an interruption it
goes on from the last checkpoint to the same result. At its end, and by --report, what is finished is written into
OUTPUT_DIR: results.md, curves.csv, curves.png. Compare runs in VisualDL: visualdl --logdir OUTPUT_DIR/cells
"""

import bootstrap  # noqa: F401

import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tasks.common.errors import exit_on_input_error
from tasks.language_model.arguments import LanguageModelArguments
from tasks.language_model.experiment_tool import run_experiment_tool
from tasks.language_model.grid import Experiment, Row
from tasks.language_model.reporting import (
    by_row,
    final_loss,
    markdown_table,
    setting,
    spread,
    write_csv,
    write_lines,
    write_png,
)

ROWS = (
    Row("rope", "Performer with RoPE", {"position_embedding": "qk"}),
    Row("none", "Performer without positions", {"position_embedding": "none"}),
    Row("learned", "Performer with learned absolute positions", {"position_embedding": "learned"}),
)
COLOURS = {"rope": "#1f5fa8", "none": "#c8560a", "learned": "#2a8a4a"}
SMOOTHED = 9  # entries of the training loss in a running mean


@dataclass
class PerformerArguments(LanguageModelArguments):
    num_random_features: int = field(default=64, metadata={"help": "of FAVOR+, for each head; even"})

    def ranges(self):
        even = (lambda value: value > 0 and value % 2 == 0), "a positive even number: features turn in pairs"
        return {**super().ranges(), "num_random_features": even}

    def shared_options(self):
        return {"attention": "linear", "feature_map": "favor", "num_random_features": self.num_random_features}


def measure(model, corpus, run, row):
    """Nothing beyond the loss curves."""
    return {}


def curve(cells, name):
    """Steps, and losses ``[seeds, steps]``, of ``name`` (``training`` or ``held_out``)."""
    steps = [step for step, _ in cells[0][name]]
    return np.array(steps), np.array([[loss for _, loss in cell[name]] for cell in cells])


def smoothed(losses, width=SMOOTHED):
    """Running means over ``width`` entries, fewer at the start: ``[..., steps]`` -> same shape."""
    sums = np.cumsum(losses, axis=-1)
    sums[..., width:] -= sums[..., :-width].copy()
    return sums / np.minimum(np.arange(1, losses.shape[-1] + 1), width)


def first_step_below(steps, losses, bound):
    """The step, between two evaluations by a straight line, at which ``losses`` first is ``bound``; the first step
    if it is below from the beginning, None if never."""
    if losses[0] <= bound:
        return steps[0]
    for (s0, l0), (s1, l1) in zip(zip(steps, losses), zip(steps[1:], losses[1:])):
        if l0 > bound >= l1:
            return s0 + (s1 - s0) * (l0 - bound) / (l0 - l1)
    return None


def draw(rows):
    """Training loss on the left, held-out loss on the right: means, and bands from the least to the most over seeds."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name, title in zip(
        panels, ("training", "held_out"), (f"training loss, running mean of {SMOOTHED} entries", "held-out loss")
    ):
        lowest, highest = [], []
        for row in ROWS:
            if row.name not in rows:
                continue
            steps, losses = curve(rows[row.name], name)
            losses = smoothed(losses) if name == "training" else losses
            axes.plot(steps, losses.mean(axis=0), color=COLOURS[row.name], label=row.title, lw=1.5)
            axes.fill_between(steps, losses.min(axis=0), losses.max(axis=0), color=COLOURS[row.name], alpha=0.2, lw=0)
            lowest.append(losses.min())
            highest.append(losses[:, len(steps) // 10].max())
        axes.set_ylim(min(lowest) - 0.1, max(highest) + 0.1)  # the fall of the first steps is the same for all
        axes.set_title(title)
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("nats a character")
    panels[0].legend()
    return figure


def report(folder, run, cells):
    """Write results.md, curves.csv and curves.png, and print the table."""
    rows = by_row(cells)
    titles = {row.name: row.title for row in ROWS}
    last_steps = min(SMOOTHED * run.logging_steps, run.steps)
    table = []
    for name, of_row in rows.items():
        last = [statistics.fmean(loss for _, loss in cell["training"][-SMOOTHED:]) for cell in of_row]
        seconds = statistics.fmean(cell["seconds"] for cell in of_row) / run.steps
        seeds = ", ".join(f"{final_loss(cell):.4f}" for cell in of_row)
        held_out = spread([final_loss(cell) for cell in of_row])
        table.append([titles[name], held_out, seeds, spread(last), f"{seconds:.3f}"])
    head = ["", "held-out loss", "each seed", f"training loss, last {last_steps} steps", "s/step"]
    lines = ["# Performer with and without RoPE", "", *setting(run, cells)]
    lines.append(
        f"- Attention: causal, linear, FAVOR+ with {run.num_random_features} positive orthogonal random features for "
        "each head, drawn once for each layer, the same for every seed; RoPE turns the features in the numerator only."
    )
    lines += ["", *markdown_table(head, table), "", *overtaking(rows), "", "![loss curves](curves.png)"]
    write_lines(Path(folder) / "results.md", lines)
    points = [
        (cell["row"], cell["seed"], name, step, loss)
        for cell in cells
        for name in ("training", "held_out")
        for step, loss in cell[name]
    ]
    write_csv(Path(folder) / "curves.csv", ("row", "seed", "text", "step", "loss"), points)
    write_png(Path(folder) / "curves.png", draw(rows))
    print("\n".join(lines))


def overtaking(rows):
    """Lines: how many steps RoPE needs for the last held-out loss of the others, on the means over seeds."""
    if "rope" not in rows:
        return []
    steps, losses = curve(rows["rope"], "held_out")
    lines = []
    for row in ROWS:
        if row.name != "rope" and row.name in rows:
            bound = statistics.fmean(final_loss(cell) for cell in rows[row.name])
            step = first_step_below(steps, losses.mean(axis=0), bound)
            reached = "does not reach it" if step is None else f"reaches it at step {step:.0f} of {steps[-1]}"
            lines.append(f"- Last held-out loss of “{row.title}”: {bound:.4f}; with RoPE the mean {reached}.")
    return lines


EXPERIMENT = Experiment(ROWS, PerformerArguments, measure, report)


@exit_on_input_error
def main(argv=None):
    return run_experiment_tool(EXPERIMENT, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
