"""Figures of the ablation of positions."""

import numpy as np

from tasks.common.reports.figures import BLUE, GRAY, ORANGE, new_figure
from tasks.experiments.positions.tables import PUBLISHED, losses_at, mean_loss, rank_correlation, scalings
from tasks.language_model.evaluation import UNSCALED
from tasks.language_model.report import final_loss


def draw_losses(rows, titles):
    """Left: the loss of every row; right: ours against the published ones."""
    figure, (left, right) = new_figure(11, 5, 1, 2)
    order = sorted(rows, key=lambda name: mean_loss(rows[name]))
    for place, name in enumerate(order):
        values = [final_loss(cell) for cell in rows[name]]
        color = BLUE if name in PUBLISHED else ORANGE
        left.plot(values, [place] * len(values), "o", ms=4, color=color, alpha=0.5)
        left.plot(np.mean(values), place, "|", ms=14, mew=2, color=color)
    left.set_yticks(range(len(order)), [titles[name] for name in order])
    left.invert_yaxis()
    left.set_xlabel("held-out loss: seeds and mean")
    left.set_title("blue: in the published table")
    ours = {name: mean_loss(rows[name]) for name in PUBLISHED if name in rows}
    for name, loss in ours.items():
        values = [final_loss(cell) for cell in rows[name]]
        right.plot([PUBLISHED[name]] * 2, [min(values), max(values)], color=BLUE, lw=1)
        right.plot(PUBLISHED[name], loss, "o", color=BLUE)
        right.annotate(titles[name], (PUBLISHED[name], loss), xytext=(6, 3), textcoords="offset points")
    correlation = rank_correlation(ours)
    if correlation is not None:
        right.set_title(f"Spearman rank correlation {correlation[0]:.2f}")
    right.set_xlabel("published loss (kexue.fm 10862)")
    right.set_ylabel("our held-out loss, mean and range")
    return figure


def draw_lengths(rows, titles, length):
    """Left: loss against the length of the text; right: against the position in the longest texts.

    Above all rows, below the one whose frequencies are scaled too.
    """
    plain = [(titles[name], cells, UNSCALED) for name, cells in rows.items()]
    scaled = [
        (titles[name] if scaling == UNSCALED else scaling, cells, scaling)
        for name, cells in rows.items()
        if len(scalings(cells)) > 1
        for scaling in scalings(cells)
    ]
    groups = [group for group in (plain, scaled) if group]
    figure, panels = new_figure(12, 4.5 * len(groups), len(groups), 2, squeeze=False)
    for (left, right), lines in zip(panels, groups):
        for number, (label, cells, scaling) in enumerate(lines):
            style = {"color": f"C{number % 10}", "ls": "-" if number < 10 else "--", "lw": 1.2}
            losses = losses_at(cells, scaling)
            means = [np.mean(values) for values in losses.values()]
            left.plot(list(losses), means, marker="o", ms=3, label=label, **style)
            right.plot(*by_position(cells, scaling), **style)
        for axes in (left, right):
            axes.axvline(length, color=GRAY, lw=0.8, ls=":")
        left.set_xscale("log", base=2)
        left.set_xlabel("length of the text in characters; dotted: length of training")
        left.set_ylabel("held-out loss, mean over seeds")
        right.set_xlabel("position in the longest texts")
        left.legend(fontsize="x-small", ncols=2)
    return figure


def by_position(cells, scaling):
    """Middles of the stretches of positions, and the losses there in the longest texts, means over seeds."""
    entries = [entry for cell in cells for entry in cell["lengths"] if entry["scaling"] == scaling]
    longest = max(entry["length"] for entry in entries)
    means = np.mean([entry["by_position"] for entry in entries if entry["length"] == longest], axis=0)
    return (np.arange(len(means)) + 0.5) * longest / len(means), means


def draw_theta(rows, titles):
    """Trained frequencies against where they started, each seed a line."""
    figure, (left, right) = new_figure(11, 4.5, 1, 2)
    for name, color in zip((name for name in rows if "theta_end" in rows[name][0]), (BLUE, ORANGE)):
        for number, cell in enumerate(rows[name]):
            start, end = np.array(cell["theta_start"]), np.array(cell["theta_end"])
            label = titles[name] if number == 0 else None
            left.plot(np.arange(len(start)), end, "o-", ms=3, lw=0.8, color=color, label=label)
            right.plot(np.arange(len(start)), np.abs(end - start) / start, "o-", ms=3, lw=0.8, color=color)
    left.plot(np.arange(len(start)), start, color=GRAY, ls="--", label="start: 10000^(-2i/d)")
    left.set_yscale("symlog", linthresh=float(start.min()))
    left.set_ylabel("theta after training")
    right.set_yscale("log")
    right.set_ylabel("relative change")
    for axes in (left, right):
        axes.set_xlabel("pair i")
    left.legend()
    return figure
