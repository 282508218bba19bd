"""What the finished runs of a plan gave: each run, and mean and deviation of each variant over its seeds."""

from __future__ import annotations

import json
from typing import Any

import yaml

from paddle_rope.machine import machine_in_words
from tasks.common.files import write_files
from tasks.common.reports.tables import as_csv, as_markdown, mean_and_deviation
from tasks.common.runs.life import CONFIG_FILE
from tasks.common.training.series import (
    RUNS_CSV,
    SUMMARY_JSON,
    SUMMARY_MD,
    FinishedRun,
    is_finished,
    summarize,
)
from tasks.experiments.figure import draw
from tasks.experiments.plan import Plan
from tasks.experiments.reports import get_report

SCORES_PNG = "scores.png"


def write_tables(plan: Plan) -> tuple[list[dict[str, Any]], str]:
    """Write what is finished of a plan: ``runs.csv``, ``summary.json``, ``summary.md``, ``scores.png``, and the files
    of its report.

    Returns:
        One dict a case and variant, with ``case``, ``variant`` and what
        :func:`~tasks.common.training.series.summarize` gives, and the tables in Markdown.
    """
    groups = {
        group: [FinishedRun.read(cell.labels, cell.folder) for cell in cells if is_finished(cell.folder)]
        for group, cells in plan.groups.items()
    }
    runs = [run for of_group in groups.values() for run in of_group]
    if not runs:
        return [], "no run is finished\n"
    rows = [
        {plan.case_name if key == "case" else key: value for key, value in run.row(plan.scores).items()} for run in runs
    ]
    summary = [
        {"case": case, "variant": variant, **summarize(of_group, plan.scores)}
        for (case, variant), of_group in groups.items()
        if of_group
    ]
    machine = machine_in_words()
    seeds = dict.fromkeys(cell.labels["seed"] for cell in plan.cells)
    table = _variants_table(plan, summary)
    text = f"{machine}; seeds {', '.join(map(str, seeds))}\n\n{as_markdown(table, list(table[0]))}"
    content = json.dumps({"machine": machine, "variants": summary}, ensure_ascii=False, indent=2)
    files = {RUNS_CSV: as_csv(rows, list(rows[0])), SUMMARY_JSON: f"{content}\n", SUMMARY_MD: text}
    files[SCORES_PNG] = draw(plan, summary)
    if plan.report is not None:
        files.update(get_report(plan.report)([_with_config(run) for run in runs]))
    write_files(plan.output_dir, files)
    return summary, files.get("results.md", text)


def _with_config(run):
    config = yaml.safe_load((run.folder / CONFIG_FILE).read_text(encoding="utf-8"))
    return {**run.labels, "config": config, **run.metrics}


def _variants_table(plan, summary):
    """One row a case and variant; ``points against`` are 100 times the difference of the mean first scores."""
    main = next(iter(plan.scores))
    means = {(entry["case"], entry["variant"]): entry["scores"][main]["mean"] for entry in summary}
    rows = []
    for entry in summary:
        row = {plan.case_name: entry["case"]} if len(plan.cases) > 1 else {}
        row.update(variant=entry["variant"], runs=entry["runs"])
        scores = entry["scores"]
        row.update((title, mean_and_deviation(scores[place]["values"])) for place, title in plan.scores.items())
        if plan.reference is not None:
            reference = means.get((entry["case"], plan.reference))
            points = None if reference is None else 100 * (entry["scores"][main]["mean"] - reference)
            row[f"points against {plan.reference}"] = "" if points is None else f"{points:+.1f}"
            if plan.margin is not None:
                near = "" if points is None else "yes" if points >= -plan.margin else "no"
                row[f"within {plan.margin:g} points"] = near
        row["train minutes"] = f"{entry['train_seconds'] / 60:.1f}"
        rows.append(row)
    return rows
