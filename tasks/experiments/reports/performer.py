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
    variants, config = by_variant(results), results[0]["config"]
    last_steps = min(SMOOTHED * config["logging_steps"], config["max_steps"])
    table = []
    for name, runs in variants.items():
        losses = [final_loss(run) for run in runs]
        last = [statistics.fmean(loss for _, loss in run["training"][-SMOOTHED:]) for run in runs]
        table.append({
            "": TITLES.get(name, name),
            "held-out loss": mean_and_deviation(losses),
            "each seed": ", ".join(f"{loss:.4f}" for loss in losses),
            f"training loss, last {last_steps} steps": mean_and_deviation(last),
            "s/step": f"{statistics.fmean(run['seconds_per_step'] for run in runs):.3f}",
        })  # fmt: skip
    lines = [
        "# Performer with and without RoPE",
        "",
        *setting(results),
        "- Attention: causal, linear, FAVOR+ with as many positive orthogonal random features as a head has "
        "dimensions, the same for every seed; RoPE turns the features in the numerator only.",
        "",
        as_markdown(table, list(table[0])),
        *overtaking(variants),
        "",
        "![loss curves](curves.png)",
    ]
    points = [
        {"variant": run["variant"], "seed": run["seed"], "text": name, "step": step, "loss": loss}
        for run in results
        for name in ("training", "held_out")
        for step, loss in run[name]
    ]
    return {
        "results.md": "\n".join(lines) + "\n",
        "curves.csv": as_csv(points, list(points[0])),
        "curves.png": png(draw(variants)),
    }


def curve(runs, name):
    """Steps, and losses ``[seeds, steps]``, of ``name`` (``training`` or ``held_out``)."""
    steps = [step for step, _ in runs[0][name]]
    return np.array(steps), np.array([[loss for _, loss in run[name]] for run in runs])


def smoothed(losses, width=SMOOTHED):
    """Running means over ``width`` entries, fewer at the start: ``[..., steps]`` -> same shape."""
    sums = np.cumsum(losses, axis=-1)
    sums[..., width:] -= sums[..., :-width].copy()
    return sums / np.minimum(np.arange(1, losses.shape[-1] + 1), width)


def first_step_below(steps, losses, bound):
    """The step, between two evaluations by a straight line, at which ``losses`` first is ``bound``; the first step
    if it is below from the beginning, None if never."""
    below = np.flatnonzero(np.asarray(losses) <= bound)
    if not below.size:
        return None
    last = below[0] + 1
    around = slice(max(0, last - 2), last)  # the evaluations before and after
    return np.interp(bound, losses[around][::-1], steps[around][::-1])


def draw(variants):
    """Training loss on the left, held-out loss on the right: means, and bands from the least to the most over seeds."""
    figure, panels = new_figure(11, 4.5, 1, 2, sharey=True)
    titles = {"training": f"training loss, running mean of {SMOOTHED} entries", "held_out": "held-out loss"}
    for axes, (name, title) in zip(panels, titles.items()):
        lowest, highest = [], []
        for variant, runs in variants.items():
            steps, losses = curve(runs, name)
            losses = smoothed(losses) if name == "training" else losses
            label = TITLES.get(variant, variant)
            (line,) = axes.plot(steps, losses.mean(axis=0), color=COLORS.get(variant), label=label, lw=1.5)
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
    if "rope" not in variants:
        return []
    steps, losses = curve(variants["rope"], "held_out")
    lines = []
    for name, runs in variants.items():
        if name != "rope":
            bound = statistics.fmean(map(final_loss, runs))
            step = first_step_below(steps, losses.mean(axis=0), bound)
            title = TITLES.get(name, name)
            reached = "does not reach it" if step is None else f"reaches it at step {step:.0f} of {steps[-1]}"
            lines.append(f"- Last held-out loss of “{title}”: {bound:.4f}; with RoPE the mean {reached}.")
    return lines
