"""What the finished runs of a plan gave: rows of each run, and of each variant over its seeds."""

from __future__ import annotations

import json
import statistics

from tasks.common.errors import InputError
from tasks.common.runs.life import METRICS_FILE
from tasks.experiments.running import is_finished


def run_rows(plan):
    """One row a finished run: dicts of case, variant, seed, the scores, seconds of training and parameters."""
    rows = []
    for cell in filter(is_finished, plan.cells):
        metrics = json.loads((cell.folder / METRICS_FILE).read_text(encoding="utf-8"))
        row = {plan.case_name: cell.case, "variant": cell.variant, "seed": cell.seed}
        row.update((name, _at(metrics, place, cell)) for place, name in plan.scores.items())
        row.update(train_seconds=metrics["train_seconds"], parameters=metrics["parameters"])
        rows.append(row)
    return rows


def run_columns(plan):
    """The columns of :func:`run_rows`."""
    return [plan.case_name, "variant", "seed", *plan.scores.values(), "train_seconds", "parameters"]


def _at(metrics, place, cell):
    value = metrics
    for key in place.split("."):
        if not isinstance(value, dict) or key not in value:
            raise InputError(f"{cell.folder / METRICS_FILE}: has no {place}; correct the scores of the plan")
        value = value[key]
    return value


def summary_rows(plan, rows):
    """One row a case and variant: mean and standard deviation of the scores over seeds, and against the reference.

    ``difference`` is in points: 100 times the difference of the mean first score to that of the reference in the same
    case; ``within`` tells whether it is above minus the plan's margin.
    """
    main = next(iter(plan.scores.values()))
    groups = {}
    for row in rows:
        groups.setdefault((row[plan.case_name], row["variant"]), []).append(row)
    means = {key: statistics.fmean(row[main] for row in group) for key, group in groups.items()}
    summary = []
    for (case, variant), group in groups.items():
        row = {plan.case_name: case, "variant": variant, "seeds": len(group)}
        for name in plan.scores.values():
            values = [one[name] for one in group]
            spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
            row[name] = f"{statistics.fmean(values):.4f}{spread}"
        if (case, plan.reference) in means:
            difference = 100 * (means[case, variant] - means[case, plan.reference])
            row["difference"] = f"{difference:+.1f}"
            if plan.margin is not None:
                row["within"] = "yes" if difference >= -plan.margin else "no"
        row["train minutes"] = f"{statistics.fmean(one['train_seconds'] for one in group) / 60:.1f}"
        row["mean"] = means[case, variant]
        summary.append(row)
    return summary


def summary_columns(plan):
    """The columns of the printed summary: heading -> key of :func:`summary_rows`."""
    columns = {name: name for name in (plan.case_name, "variant", "seeds", *plan.scores.values())}
    if len(plan.cases) == 1:
        del columns[plan.case_name]
    if plan.reference is not None:
        columns[f"points against {plan.reference}"] = "difference"
        if plan.margin is not None:
            columns[f"within {plan.margin:g} points"] = "within"
    columns["train minutes"] = "train minutes"
    return columns
