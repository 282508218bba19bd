"""The report of plans that compare Performers: their loss curves, and how soon RoPE has the others' last loss."""

import statistics

import numpy as np

from tasks.common.reports.figures import BLUE, GREEN, ORANGE, new_figure, png
from tasks.common.reports.tables import as_csv, as_markdown, mean_and_deviation
from tasks.experiments.reports.language_models import by_variant, final_loss, setting

TITLES = {
    "rope": "Performer with RoPE",
    "none": "Performer without positions",
    "learned": "Performer with learned absolute positions",
}
COLORS = {"rope": BLUE, "none": ORANGE, "learned": GREEN}
SMOOTHED = 9  # entries of the training loss in a running mean


def report(results):
    """The files of the report, see :func:`tasks.experiments.table.get_report`."""
    variants = by_variant(results)
    table = []
    for name, runs in variants.items():
        losses = [final_loss(run) for run in runs]
        last = [statistics.fmean(loss for _, loss in run["training"][-SMOOTHED:]) for run in runs]
        table.append({
            "": TITLES.get(name, name),
            "held-out loss": mean_and_deviation(losses),
            "each seed": ", ".join(f"{loss:.4f}" for loss in losses),
            "training loss at the end": mean_and_deviation(last),
            "s/step": f"{statistics.fmean(run['seconds_per_step'] for run in runs):.3f}",
        })  # fmt: skip
    parts = ["# Performer with and without RoPE\n", *setting(results), "", as_markdown(table, list(table[0]))]
    parts += [*overtaking(variants), "", "![loss curves](curves.png)", ""]
    points = [
        {"variant": run["variant"], "seed": run["seed"], "text": name, "step": step, "loss": loss}
        for run in results
        for name in ("training", "held_out")
        for step, loss in run[name]
    ]
    files = {"curves.csv": as_csv(points, list(points[0])), "curves.png": png(draw(variants))}
    return {"results.md": "\n".join(parts), **files}


def curve(runs, name):
    """Steps, and losses ``[seeds, steps]``, of ``name`` (``training`` or ``held_out``)."""
    steps, losses = np.moveaxis(np.array([run[name] for run in runs]), -1, 0)
    return steps[0], losses


def draw(variants):
    """Training loss on the left, held-out loss on the right: means, and bands from the least to the most over seeds."""
    figure, panels = new_figure(11, 4.5, 1, 2, sharey=True)
    titles = {"training": f"training loss, running mean of {SMOOTHED} entries", "held_out": "held-out loss"}
    for axes, (name, title) in zip(panels, titles.items()):
        lowest, highest = [], []
        for variant, runs in variants.items():
            steps, losses = curve(runs, name)
            if name == "training":
                width = min(SMOOTHED, len(steps))
                steps = steps[width - 1 :]
                losses = np.lib.stride_tricks.sliding_window_view(losses, width, axis=1).mean(axis=-1)
            color, label = COLORS.get(variant), TITLES.get(variant, variant)
            (line,) = axes.plot(steps, losses.mean(axis=0), color=color, label=label, lw=1.5)
            axes.fill_between(steps, losses.min(axis=0), losses.max(axis=0), color=line.get_color(), alpha=0.2, lw=0)
            lowest.append(losses.min())
            highest.append(losses[:, len(steps) // 10].max())
        axes.set_ylim(min(lowest) - 0.1, max(highest) + 0.1)  # the fall of the first steps is the same for all
        axes.set_title(title)
        axes.set_xlabel("step")
    panels[0].set_ylabel("nats a character")
    panels[0].legend()
    return figure


def overtaking(variants):
    """Lines: how many steps RoPE needs for the last held-out loss of the others, on the means over seeds."""
    lines = []
    for name, runs in variants.items() if "rope" in variants else ():
        if name != "rope":
            steps, losses = curve(variants["rope"], "held_out")
            bound = statistics.fmean(map(final_loss, runs))
            reached = np.flatnonzero(losses.mean(axis=0) <= bound)
            way = (
                f"reaches it by step {steps[reached[0]]:.0f} of {steps[-1]:.0f}"
                if reached.size
                else "does not reach it"
            )
            lines.append(f"- Last held-out loss of “{TITLES.get(name, name)}”: {bound:.4f}; with RoPE the mean {way}.")
    return lines
