"""Figures of the comparison of positions."""

from __future__ import annotations

import numpy as np

from tasks.common.reports.figures import BLUE, GRAY, ORANGE, new_figure
from tasks.language_model.evaluation import UNSCALED


def draw_losses(losses, published, titles):
    """Left: the loss of each variant, seeds and mean; right: ours against the published ones."""
    figure, (left, right) = new_figure(11, 5, 1, 2)
    order = sorted(losses, key=lambda name: np.mean(losses[name]))
    for place, name in enumerate(order):
        color = BLUE if name in published else ORANGE
        left.plot(losses[name], [place] * len(losses[name]), "o", ms=4, color=color, alpha=0.5)
        left.plot(np.mean(losses[name]), place, "|", ms=14, mew=2, color=color)
    left.set_yticks(range(len(order)), [titles[name] for name in order])
    left.invert_yaxis()
    left.set_xlabel("held-out loss: seeds and mean")
    left.set_title("blue: in the published table")
    for name, loss in published.items():
        right.plot([loss] * 2, [min(losses[name]), max(losses[name])], color=BLUE, lw=1)
        right.plot(loss, np.mean(losses[name]), "o", color=BLUE)
        right.annotate(titles[name], (loss, np.mean(losses[name])), xytext=(6, 3), textcoords="offset points")
    right.set_xlabel("published loss (kexue.fm 10862)")
    right.set_ylabel("our held-out loss, mean and range")
    return figure


def draw_lengths(variants, titles, length):
    """Left: loss against the length of the text; right: against the position in the longest texts. Above all variants,
    below the one whose frequencies are scaled too."""
    plain, scaled = [], []  # (title, entries of all seeds)
    for name, runs in variants.items():
        entries = [entry for run in runs for entry in run["lengths"]]
        scalings = list(dict.fromkeys(entry["scaling"] for entry in entries))
        for scaling in scalings:
            line = [entry for entry in entries if entry["scaling"] == scaling]
            if scaling == UNSCALED:
                plain.append((titles[name], line))
            if len(scalings) > 1:
                scaled.append((titles[name] if scaling == UNSCALED else scaling, line))
    groups = [group for group in (plain, scaled) if group]
    figure, panels = new_figure(12, 4.5 * len(groups), len(groups), 2, squeeze=False)
    for (left, right), lines in zip(panels, groups):
        for number, (title, entries) in enumerate(lines):
            style = {"color": f"C{number % 10}", "ls": "-" if number < 10 else "--", "lw": 1.2}
            lengths = sorted({entry["length"] for entry in entries})
            means = [np.mean([entry["loss"] for entry in entries if entry["length"] == one]) for one in lengths]
            left.plot(lengths, means, marker="o", ms=3, label=title, **style)
            longest = [entry["by_position"] for entry in entries if entry["length"] == lengths[-1]]
            stretches = np.mean(longest, axis=0)
            right.plot((np.arange(len(stretches)) + 0.5) * lengths[-1] / len(stretches), stretches, **style)
        for axes in (left, right):
            axes.axvline(length, color=GRAY, lw=0.8, ls=":")
        left.set_xscale("log", base=2)
        left.set_xlabel("length of the text in characters; dotted: length of training")
        left.set_ylabel("held-out loss, mean over seeds")
        right.set_xlabel("position in the longest texts")
        left.legend(fontsize="x-small", ncols=2)
    return figure


def draw_theta(variants, titles):
    """Trained frequencies against where they started, each seed a line."""
    figure, (left, right) = new_figure(11, 4.5, 1, 2)
    trained = {name: runs for name, runs in variants.items() if "theta_end" in runs[0]}
    for (name, runs), color in zip(trained.items(), (BLUE, ORANGE)):
        for number, run in enumerate(runs):
            start, end = np.array(run["theta_start"]), np.array(run["theta_end"])
            left.plot(end, "o-", ms=3, lw=0.8, color=color, label=titles[name] if number == 0 else None)
            right.plot(np.abs(end - start) / start, "o-", ms=3, lw=0.8, color=color)
    left.plot(start, color=GRAY, ls="--", label="start: 10000^(-2i/d)")
    left.set_yscale("symlog", linthresh=float(start.min()))
    left.set_ylabel("theta after training")
    right.set_yscale("log")
    right.set_ylabel("relative change")
    for axes in (left, right):
        axes.set_xlabel("pair i")
    left.legend()
    return figure
