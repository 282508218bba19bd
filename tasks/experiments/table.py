"""What the finished runs of a plan gave: each run, and mean and deviation of each variant over its seeds or folds."""

from __future__ import annotations

import json
import statistics
from typing import Any

import yaml

from paddle_rope.machine import machine_in_words
from tasks.common.errors import InputError
from tasks.common.files import read_json_object, write_files
from tasks.common.reports.tables import as_csv, as_markdown, mean_and_deviation
from tasks.common.runs.life import CONFIG_FILE, METRICS_FILE
from tasks.experiments.cells import is_finished
from tasks.experiments.figure import draw
from tasks.experiments.plan import Cell, Plan
from tasks.experiments.reports import get_report
from tasks.recipes import get_recipe

RUNS_CSV, SUMMARY_JSON, SUMMARY_MD, SCORES_PNG = "runs.csv", "summary.json", "summary.md", "scores.png"
SPLITS = ("dev", "test")
Runs = list[tuple[Cell, dict[str, Any]]]  # finished cells, and what they left in metrics.json


def write_tables(plan: Plan) -> tuple[list[dict[str, Any]], str]:
    """Write what is finished of a plan: ``runs.csv``, ``summary.json`` and ``summary.md``; ``scores.png`` where it has
    several variants; the files of its report.

    Returns:
        What :func:`summarize` gives, and the tables in Markdown.
    """
    cells = [cell for group in plan.groups.values() for cell in group if is_finished(cell)]
    remedy = "remove the folder of this run, and train it anew"
    runs = [(cell, read_json_object(cell.folder / METRICS_FILE, remedy)) for cell in cells]
    if not runs:
        return [], "no run is finished\n"
    places = plan.scores or _scores_of_recipe(plan, runs[0][1])
    rows = run_rows(plan, runs, places)
    summary = summarize(runs, places)
    is_series = len(plan.groups) == 1
    if is_series and len(runs) == len(plan.cells):
        _add_ensemble(plan, summary[0]["scores"])
    machine = machine_in_words()
    seeds = dict.fromkeys(cell.labels["seed"] for cell in plan.cells if "seed" in cell.labels)
    table = _series_table(plan, runs, places, summary[0]) if is_series else _variants_table(plan, places, summary)
    text = f"{machine}{'; seeds ' * bool(seeds)}{', '.join(map(str, seeds))}\n\n{as_markdown(table, list(table[0]))}"
    content = json.dumps({"machine": machine, "variants": summary}, ensure_ascii=False, indent=2)
    files = {RUNS_CSV: as_csv(rows, list(rows[0])), SUMMARY_JSON: f"{content}\n", SUMMARY_MD: text}
    if not is_series:
        files[SCORES_PNG] = draw(plan, summary)
    if plan.report is not None:
        files.update(get_report(plan.report)([_with_config(*run) for run in runs]))
    write_files(plan.output_dir, files)
    return summary, files.get("results.md", text)


def run_rows(plan: Plan, runs: Runs, places: dict[str, str]) -> list[dict[str, Any]]:
    """One row a run: its labels, scores, seconds of training and parameters, under the heads of the tables."""
    rows = []
    for cell, metrics in runs:
        row = {plan.case_name if key == "case" else key: value for key, value in cell.labels.items()}
        row.update((title, _at(cell, metrics, place)) for place, title in places.items())
        rows.append({**row, **{name: metrics.get(name, "") for name in ("train_seconds", "parameters")}})
    return rows


def summarize(runs: Runs, places: dict[str, str]) -> list[dict[str, Any]]:
    """What the runs of each case and variant gave.

    Args:
        runs: finished ones.
        places: of the scores in ``metrics.json``, such as ``dev.f1`` -> their titles.

    Returns:
        One dict a case and variant: ``case`` and ``variant``; ``runs``, their number; mean ``train_seconds``; and
        ``scores``: from each place to ``values``, their ``mean`` and ``standard_deviation`` (of the sample, n - 1; None
        for one value), and where all seeds of one configuration are finished, and the recipe has such a thing,
        ``ensemble``, the score of their models together. The values are those of the seeds, each the mean over its
        folds; of one seed those of its folds.
    """
    groups = {}
    for cell, metrics in runs:
        groups.setdefault(cell.group, []).append((cell, metrics))
    summary = []
    for (case, variant), group in groups.items():
        seconds = statistics.fmean(metrics.get("train_seconds", 0.0) for _, metrics in group)
        scores = {}
        for place in places:
            values = _over_folds([(cell, _at(cell, metrics, place)) for cell, metrics in group])
            deviation = statistics.stdev(values) if len(values) > 1 else None
            scores[place] = {"values": values, "mean": statistics.fmean(values), "standard_deviation": deviation}
        labels = {"case": case, "variant": variant, "runs": len(group)}
        summary.append({**labels, "train_seconds": seconds, "scores": scores})
    return summary


def _scores_of_recipe(plan, metrics):
    """The scores of the recipe, as far as a run has such."""
    pairs = [(split, name) for split in SPLITS for name in get_recipe(plan.recipe).scores]
    return {f"{split}.{name}": f"{split} {name}" for split, name in pairs if name in metrics.get(split, ())}


def _add_ensemble(plan, scores):
    if len(plan.cells) == 1 or any("fold" in cell.labels for cell in plan.cells):
        return
    folders = [str(cell.folder) for cell in plan.cells]
    together = get_recipe(plan.recipe).score_ensemble(plan.cells[0].config, folders)
    for place, row in scores.items() if together else ():
        split, name = place.split(".")
        row["ensemble"] = together[split][name]


def _with_config(cell, metrics):
    config = yaml.safe_load((cell.folder / CONFIG_FILE).read_text(encoding="utf-8"))
    return {**cell.labels, "config": config, **metrics}


def _at(cell, metrics, place):
    value = metrics
    for key in place.split("."):
        if not isinstance(value, dict) or key not in value:
            raise InputError(f"{cell.folder / METRICS_FILE}: has no {place}; correct the scores of the plan")
        value = value[key]
    return value


def _over_folds(values):
    """Pairs of cell and value -> the mean of each seed; of one seed all values."""
    seeds = {}
    for cell, value in values:
        seeds.setdefault(cell.labels.get("seed"), []).append(value)
    return next(iter(seeds.values())) if len(seeds) == 1 else list(map(statistics.fmean, seeds.values()))


def _series_table(plan, runs, places, entry):
    """One row a score, one column a seed, or a fold of one seed."""
    by_seed = len({cell.labels.get("seed") for cell in plan.cells}) > 1 or "fold" not in plan.cells[0].labels
    label = "seed" if by_seed else "fold"
    names = list(dict.fromkeys(f"{label} {cell.labels[label]}" for cell, _ in runs))
    rows = []
    for place, title in places.items():
        score = entry["scores"][place]
        row = {"": title, **{name: f"{value:.4f}" for name, value in zip(names, score["values"])}}
        row["mean ± deviation"] = mean_and_deviation(score["values"])
        rows.append({**row, **({"ensemble": f"{score['ensemble']:.4f}"} if "ensemble" in score else {})})
    return rows


def _variants_table(plan, places, summary):
    """One row a case and variant; ``points against`` are 100 times the difference of the mean first scores."""
    main = next(iter(places))
    means = {(entry["case"], entry["variant"]): entry["scores"][main]["mean"] for entry in summary}
    rows = []
    for entry in summary:
        row = {plan.case_name: entry["case"]} if len(plan.cases) > 1 else {}
        row.update(variant=entry["variant"], runs=entry["runs"])
        row.update((title, mean_and_deviation(entry["scores"][place]["values"])) for place, title in places.items())
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
