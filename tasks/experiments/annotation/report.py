"""The report of the simulated annotation loop: curves over labeled texts and characters, and labels saved."""

import math
import statistics

from tasks.common.reports.figures import BLUE, GRAY, GREEN, ORANGE, new_figure, png
from tasks.common.reports.tables import as_csv, as_markdown, mean_and_deviation
from tasks.experiments.performer.report import first_step_below

REFERENCE = "random"
TITLES = {
    "uncertain": "total entropy",
    "doubtful_span": "the most doubtful span",
    "longest": "the longest texts",
    REFERENCE: "at random",
}
COLORS = {"uncertain": BLUE, "doubtful_span": GREEN, "longest": ORANGE, REFERENCE: GRAY}
UNITS = ("texts", "characters", "entities")


def report(results):
    """The files of the report, see :func:`tasks.experiments.reports.get_report`."""
    curves = curves_of(results)
    rows = [
        {"variant": variant, "seed": seed, **point} for variant, seeds in curves.items() for seed in seeds
        for point in seeds[seed]
    ]  # fmt: skip
    lines = ["# The annotation loop, simulated", "", as_markdown(*_scores(curves)).rstrip(), *_savings(curves)]
    return {
        "results.md": "\n".join([*lines, "![curves](curves.png)", ""]),
        "curves.csv": as_csv(rows, list(rows[0])),
        "curves.png": png(draw(curves)),
    }


def curves_of(results):
    """dict from each variant to a dict from each seed to its points, by labeled texts: each a dict of what is labeled,
    as :data:`UNITS`, and the ``f1`` on the test file."""
    curves = {}
    for run in results:
        point = {**run["labeled"], "f1": run["test"]["f1"]}
        curves.setdefault(run["variant"], {}).setdefault(run["seed"], []).append(point)
    for seeds in curves.values():
        for points in seeds.values():
            points.sort(key=lambda point: point["texts"])
    return {variant: curves[variant] for variant in TITLES if variant in curves}


def saved(curve, reference, unit):
    """Share of the labels of a reference that a curve does without, for the last F1 of the reference.

    Args:
        curve, reference: points, as :func:`curves_of` has them.
        unit: of :data:`UNITS`.

    Returns:
        A share, less than 0 if more labels are needed; None if the curve does not reach that F1. Between its points the
        curve is straight over the logarithm of the labels, as learning curves nearly are.
    """
    amounts, losses = [math.log(point[unit]) for point in curve], [-point["f1"] for point in curve]
    needed = first_step_below(amounts, losses, -reference[-1]["f1"])
    return None if needed is None else 1 - math.exp(needed) / reference[-1][unit]


def _last(curves):
    """The most labeled texts of any point."""
    return max(points[-1]["texts"] for seeds in curves.values() for points in seeds.values())


def _rounds(seeds):
    """The points of all seeds with as many texts, by the number of texts."""
    rounds = {}
    for point in (point for points in seeds.values() for point in points):
        rounds.setdefault(point["texts"], []).append(point)
    return [rounds[texts] for texts in sorted(rounds)]


def _scores(curves):
    """Rows and columns of the table of F1."""
    rows = []
    for variant, seeds in curves.items():
        row = {"next texts": TITLES[variant], "seeds": len(seeds)}
        for points in _rounds(seeds):
            row[f"F1, {points[0]['texts']:,} texts"] = mean_and_deviation([point["f1"] for point in points])
        ends = [points[-1] for points in seeds.values() if points[-1]["texts"] == _last(curves)]
        for unit in UNITS[1:] if ends else ():
            row[f"{unit} a text"] = f"{statistics.fmean(end[unit] / end['texts'] for end in ends):.1f}"
        rows.append(row)
    return rows, list(dict.fromkeys(key for row in rows for key in row))


def _savings(curves):
    """Lines: a table of the labels that each strategy saves, in each unit."""
    rows, last = [], _last(curves)
    whole = {
        variant: {seed: points for seed, points in seeds.items() if points[-1]["texts"] == last}
        for variant, seeds in curves.items()
    }
    for variant in (name for name in whole if name != REFERENCE):
        shared = [seed for seed in whole[variant] if seed in whole.get(REFERENCE, ())]
        if not shared:
            continue
        row = {"next texts": TITLES[variant], "seeds": len(shared)}
        for unit in UNITS:
            shares = [saved(whole[variant][seed], whole[REFERENCE][seed], unit) for seed in shared]
            each = ", ".join("not reached" if share is None else f"{share:.0%}" for share in shares)
            row[f"{unit} saved"] = each if None in shares else f"{statistics.fmean(shares):.0%} ({each})"
        rows.append(row)
    if not rows:
        return []
    head = f"Labels saved at the F1 of {last:,} texts chosen at random: the mean, and each seed in brackets."
    return ["", head, "", as_markdown(rows, list(rows[0]))]


def draw(curves):
    """F1 over labeled texts on the left, over labeled characters on the right: means, and bands from the least to the
    most over the seeds."""
    figure, panels = new_figure(10, 4.2, 1, 2, sharey=True)
    for axes, unit in zip(panels, UNITS):
        for variant, seeds in curves.items():
            rounds = _rounds(seeds)
            amounts = [statistics.fmean(point[unit] for point in points) for points in rounds]
            f1 = [[point["f1"] for point in points] for points in rounds]
            color = COLORS[variant]
            means = list(map(statistics.fmean, f1))
            axes.plot(amounts, means, color=color, marker="o", ms=4, lw=1.5, label=TITLES[variant])
            axes.fill_between(amounts, list(map(min, f1)), list(map(max, f1)), color=color, alpha=0.15, lw=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(amounts, [f"{amount:,.0f}" for amount in amounts])  # of the last curve, that of chance
        axes.set_xlabel(f"labeled {unit}")
    panels[0].set_ylabel("F1 on the test file")
    panels[0].legend(title="next texts", fontsize=9)
    return figure
