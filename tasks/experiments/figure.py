"""The scores of a plan as a picture."""

import numpy as np

from tasks.common.reports.figures import BLUE, GRAY, GREEN, ORANGE, new_figure, png
from tasks.experiments.plan import TWIN

COLORS = [ORANGE, BLUE, GREEN, "#8a3fa0", "#b5891c", "#3aa0a0", "#a03a55", "#5a6b2f", "#4a4a9a"]


def draw(plan, summary):
    """PNG of the first score of a :class:`~tasks.experiments.plan.Plan`: lines over numbered cases, with bars of one
    standard deviation over the seeds, or else a point for each variant. ``summary`` is that of
    :func:`tasks.experiments.table.summarize`, not empty."""
    place, score = next(iter(plan.scores.items()))
    means = {(entry["case"], entry["variant"]): entry["scores"][place]["mean"] for entry in summary}
    spreads = {(entry["case"], entry["variant"]): entry["scores"][place]["standard_deviation"] for entry in summary}
    lines = len(plan.cases) > 1 and all(case.isdigit() for case in plan.cases)
    return png(_lines(plan, means, spreads, score) if lines else _points(plan, means, score))


def _lines(plan, means, spreads, score):
    figure, axes = new_figure(9, 5)
    colors = {}
    for variant in plan.variants:
        cases = [case for case in plan.cases if (case, variant) in means]
        if not cases:
            continue
        # a variant and its twin without RoPE have one color
        color = colors.setdefault(variant.removesuffix(TWIN), COLORS[len(colors) % len(COLORS)])
        style = "--" if variant.endswith(TWIN) else "-"
        values = [means[case, variant] for case in cases]
        bars = [spreads[case, variant] or 0 for case in cases]
        axes.errorbar(
            list(map(int, cases)), values, bars if any(bars) else None, fmt=style, color=color, marker="o", ms=4,
            elinewidth=1, capsize=3, label=variant,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(map(int, plan.cases)), plan.cases)
    axes.set_xlabel(plan.case_name)
    axes.set_ylabel(score)
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def _points(plan, means, score):
    rows = [(f"{case} {variant}".strip(), case, variant) for case in plan.cases for variant in plan.variants]
    rows = [row for row in rows if row[1:] in means]
    values = np.array([means[row[1:]] for row in rows])
    figure, axes = new_figure(8, 1 + 0.28 * len(rows), grid="y")
    colors = [COLORS[0] if variant == plan.reference else COLORS[1] for _, _, variant in rows]
    axes.scatter(values, range(len(rows)), color=colors, s=30, zorder=2, clip_on=False)
    for place, value in enumerate(values):
        axes.text(1.01, place, f"{value:.3f}", transform=axes.get_yaxis_transform(), va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize=8)
    axes.invert_yaxis()
    room = max(values.max() - values.min(), 0.02)
    highest = 1 if values.max() <= 1 else np.inf  # of a score
    axes.set_xlim(values.min() - 0.05 * room, min(values.max() + 0.05 * room, highest))
    if len(plan.cases) == 1 and (plan.cases[0], plan.reference) in means and plan.margin is not None:
        axes.axvline(means[plan.cases[0], plan.reference] - plan.margin / 100, color=GRAY, ls="--", lw=1)
    axes.set_xlabel(score)
    return figure
