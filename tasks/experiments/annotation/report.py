"""The report of the simulated annotation loop: curves over labeled texts and characters, and labels saved."""

import statistics

import numpy as np

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
        A share, from straight lines between the points of the curve; None if the curve does not reach that F1.
    """
    amounts, losses = [point[unit] for point in curve], [-point["f1"] for point in curve]
    needed = first_step_below(amounts, losses, -reference[-1]["f1"])
    return None if needed is None else 1 - needed / reference[-1][unit]


def _scores(curves):
    """Rows and columns of the table of F1."""
    rows = []
    for variant, seeds in curves.items():
        values = {}
        for points in seeds.values():
            for point in points:
                values.setdefault(point["texts"], []).append(point["f1"])
        scores = {f"F1, {texts:,} texts": mean_and_deviation(values[texts]) for texts in sorted(values)}
        characters = statistics.fmean(points[-1]["characters"] / points[-1]["texts"] for points in seeds.values())
        entities = statistics.fmean(points[-1]["entities"] / points[-1]["texts"] for points in seeds.values())
        rows.append({
            "next texts": TITLES[variant], "seeds": len(seeds), **scores,
            "characters a text": round(characters, 1), "entities a text": round(entities, 2),
        })  # fmt: skip
    return rows, list(dict.fromkeys(key for row in rows for key in row))


def _savings(curves):
    """Lines: a table of the labels that each strategy saves, in each unit."""
    rows, last = [], 0
    for variant in curves if REFERENCE in curves else ():
        shared = [seed for seed in curves[variant] if seed in curves[REFERENCE]]
        if variant == REFERENCE or not shared:
            continue
        pairs = [_until_the_same_number(curves[variant][seed], curves[REFERENCE][seed]) for seed in shared]
        last = max(last, *(reference[-1]["texts"] for _, reference in pairs))
        row = {"next texts": TITLES[variant], "seeds": len(shared)}
        for unit in UNITS:
            shares = [saved(*pair, unit) for pair in pairs]
            each = ", ".join("not reached" if share is None else f"{share:.0%}" for share in shares)
            row[f"{unit} saved"] = each if None in shares else f"{statistics.fmean(shares):.0%} ({each})"
        rows.append(row)
    if not rows:
        return []
    head = f"Labels saved at the F1 of {last:,} texts chosen at random: the mean, and each seed in brackets."
    return ["", head, "", as_markdown(rows, list(rows[0]))]


def _until_the_same_number(curve, reference):
    """Both curves up to the last number of texts that both have."""
    last = max({point["texts"] for point in curve} & {point["texts"] for point in reference})
    return [[point for point in points if point["texts"] <= last] for points in (curve, reference)]


def draw(curves):
    """F1 over labeled texts on the left, over labeled characters on the right: means, and bands from the least to the
    most over the seeds."""
    figure, panels = new_figure(10, 4.2, 1, 2, sharey=True)
    for axes, unit in zip(panels, UNITS):
        for variant, seeds in curves.items():
            shortest = min(map(len, seeds.values()))
            amounts = np.mean([[point[unit] for point in points[:shortest]] for points in seeds.values()], axis=0)
            f1 = np.array([[point["f1"] for point in points[:shortest]] for points in seeds.values()])
            color = COLORS[variant]
            axes.plot(amounts, f1.mean(axis=0), color=color, marker="o", ms=4, lw=1.5, label=TITLES[variant])
            axes.fill_between(amounts, f1.min(axis=0), f1.max(axis=0), color=color, alpha=0.15, lw=0)
        axes.set_xlabel(f"labeled {unit}")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    panels[0].set_ylabel("F1 on the test file")
    panels[0].legend(title="next texts", fontsize=9)
    return figure
