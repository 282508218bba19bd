"""What the finished runs of a plan gave: each run, and mean and deviation of each variant over its seeds or folds."""

from __future__ import annotations

import json
import statistics
from typing import Any

import yaml

from paddle_rope.machine import machine_in_words
from tasks.common.errors import InputError
from tasks.common.files import atomic_writer
from tasks.common.reports.tables import as_csv, as_markdown, mean_and_deviation
from tasks.common.runs.life import CONFIG_FILE, METRICS_FILE
from tasks.experiments.cells import is_finished, read_metrics
from tasks.experiments.plan import Cell, Plan
from tasks.experiments.reports import get_report
from tasks.recipes import get_recipe

RUNS_CSV, SUMMARY_JSON, SUMMARY_MD, SCORES_PNG = "runs.csv", "summary.json", "summary.md", "scores.png"
SPLITS = ("dev", "test")
COSTS = ("train_seconds", "parameters")


def write_tables(plan: Plan) -> tuple[list[dict[str, Any]], str]:
    """Write what is finished of a plan: ``runs.csv``, ``summary.json`` and ``summary.md``; ``scores.png`` where it has
    several variants; the files of its report.

    Returns:
        What :func:`summarize` gives, and the tables in Markdown.
    """
    summary = summarize(plan)
    if not summary:
        return summary, "no run is finished\n"
    rows = run_rows(plan)
    is_series = len(plan.groups) == 1
    seeds = list(dict.fromkeys(cell.labels["seed"] for cell in plan.cells if "seed" in cell.labels))
    facts = machine_in_words() + (f"; seeds {', '.join(map(str, seeds))}" if seeds else "")
    text = f"{facts}\n\n{_series_table(plan, summary[0]) if is_series else _variants_table(plan, summary)}"
    files = {
        RUNS_CSV: as_csv(rows, list(rows[0])),
        SUMMARY_JSON: json.dumps({"machine": machine_in_words(), "variants": summary}, ensure_ascii=False, indent=2)
        + "\n",
        SUMMARY_MD: text,
    }
    if not is_series:
        from tasks.experiments.figure import draw

        files[SCORES_PNG] = draw(plan, summary)
    if plan.report is not None:
        files.update(get_report(plan.report)(list(map(_results, _finished(plan)))))
    for name, content in files.items():
        with atomic_writer(plan.output_dir / name, binary=True) as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
    return summary, files.get("results.md", text)


def summarize(plan: Plan) -> list[dict[str, Any]]:
    """What the runs of each case and variant gave, as far as they are finished.

    Returns:
        One dict a case and variant: ``case`` and ``variant``, if the plan has such, ``runs``, the number of those that
        are finished, mean ``train_seconds``, and ``scores``: from the place in ``metrics.json``, such as ``dev.f1``, to
        ``values``, their ``mean`` and ``standard_deviation`` (of the sample, n - 1; None for one value), and, where all
        seeds of one configuration are finished and the recipe has such a thing, ``ensemble``, the score of their models
        together. The values are those of the seeds, each the mean over its folds; of one seed those of its folds.
    """
    places, entries = _scores(plan), []
    for (case, variant), cells in plan.groups.items():
        done = {cell.name: read_metrics(cell) for cell in cells if is_finished(cell)}
        if not done:
            continue
        entry = {"case": case, "variant": variant} if "variant" in cells[0].labels else {}
        entry.update(runs=len(done), train_seconds=statistics.fmean(one.get(COSTS[0], 0.0) for one in done.values()))
        entry["scores"] = {}
        for place in places:
            values = _over_folds([(cell, _at(cell, done[cell.name], place)) for cell in cells if cell.name in done])
            deviation = statistics.stdev(values) if len(values) > 1 else None
            entry["scores"][place] = {
                "values": values, "mean": statistics.fmean(values), "standard_deviation": deviation
            }  # fmt: skip
        entries.append(entry)
    if len(plan.groups) == 1 and len(plan.cells) > 1 and all(map(is_finished, plan.cells)):
        _add_ensemble(plan, entries[0]["scores"])
    return entries


def _add_ensemble(plan, scores):
    if any("fold" in cell.labels for cell in plan.cells):
        return
    folders = [str(cell.folder) for cell in plan.cells]
    together = get_recipe(plan.recipe).score_ensemble(plan.cells[0].config, folders)
    for place, row in scores.items():
        split, name = place.split(".")
        if together is not None:
            row["ensemble"] = together[split][name]


def run_rows(plan: Plan) -> list[dict[str, Any]]:
    """One row a finished run: its labels, scores, seconds of training and parameters, under the heads of the tables."""
    places = _scores(plan)
    rows = []
    for cell in _finished(plan):
        metrics = read_metrics(cell)
        labels = {plan.case_name if key == "case" else key: value for key, value in cell.labels.items()}
        scores = {title: _at(cell, metrics, place) for place, title in places.items()}
        rows.append({**labels, **scores, **{name: metrics.get(name, "") for name in COSTS}})
    return rows


def _finished(plan: Plan) -> list[Cell]:
    return [cell for cells in plan.groups.values() for cell in cells if is_finished(cell)]


def _results(cell):
    config = yaml.safe_load((cell.folder / CONFIG_FILE).read_text(encoding="utf-8"))
    return {**cell.labels, "config": config, **read_metrics(cell)}


def _scores(plan: Plan) -> dict[str, str]:
    """The scores of a plan, or those of its recipe as far as the first finished run has such."""
    if plan.scores is not None:
        return plan.scores
    cells = _finished(plan)
    metrics = read_metrics(cells[0]) if cells else {}
    pairs = [(split, name) for split in SPLITS for name in get_recipe(plan.recipe).scores]
    return {f"{split}.{name}": f"{split} {name}" for split, name in pairs if name in metrics.get(split, ())}


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


def _series_table(plan, entry):
    """One row a score, one column a seed, or a fold of one seed."""
    by_seed = len({cell.labels.get("seed") for cell in plan.cells}) > 1 or "fold" not in plan.cells[0].labels
    label = "seed" if by_seed else "fold"
    names = list(dict.fromkeys(f"{label} {cell.labels[label]}" for cell in _finished(plan)))
    rows = []
    for place, title in _scores(plan).items():
        score = entry["scores"][place]
        row = {"": title, **{name: f"{value:.4f}" for name, value in zip(names, score["values"])}}
        row["mean ± deviation"] = mean_and_deviation(score["values"])
        rows.append({**row, **({"ensemble": f"{score['ensemble']:.4f}"} if "ensemble" in score else {})})
    return as_markdown(rows, list(rows[0]))


def _variants_table(plan, summary):
    """One row a case and variant; ``points against`` are 100 times the difference of the mean first scores."""
    places = _scores(plan)
    main = next(iter(places))
    means = {(entry["case"], entry["variant"]): entry["scores"][main]["mean"] for entry in summary}
    rows = []
    for entry in summary:
        case, variant = entry["case"], entry["variant"]
        row = {plan.case_name: case} if len(plan.cases) > 1 else {}
        row.update(variant=variant, runs=entry["runs"])
        row.update((title, mean_and_deviation(entry["scores"][place]["values"])) for place, title in places.items())
        if plan.reference is not None:
            reference = means.get((case, plan.reference))
            points = None if reference is None else 100 * (means[case, variant] - reference)
            row[f"points against {plan.reference}"] = "" if points is None else f"{points:+.1f}"
            if plan.margin is not None:
                near = "" if points is None else "yes" if points >= -plan.margin else "no"
                row[f"within {plan.margin:g} points"] = near
        row["train minutes"] = f"{entry['train_seconds'] / 60:.1f}"
        rows.append(row)
    return as_markdown(rows, list(rows[0]))
