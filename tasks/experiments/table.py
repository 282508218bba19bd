"""What finished runs gave: of a plan each run, mean and deviation of each variant over its seeds, and a picture; of any
runs a table with the keys that differ."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.common.files import read_json_object, write_files
from tasks.common.reports.figures import BLUE, GRAY, GREEN, ORANGE, new_figure, png
from tasks.common.reports.tables import as_markdown, mean_and_deviation
from tasks.common.run_config import read_run_config
from tasks.common.training.run import CONFIG_FILE, METRICS_FILE
from tasks.common.training.series import SUMMARY_MD, FinishedRun, is_finished, summarize, summary_files
from tasks.experiments import language_models
from tasks.experiments.plan import Plan

TWIN = "-no-rope"  # at the end of a variant's name: drawn dashed, in the color of the variant with RoPE
COLORS = [ORANGE, BLUE, GREEN, "#8a3fa0", "#b5891c", "#3aa0a0", "#a03a55", "#5a6b2f", "#4a4a9a"]


def write_tables(plan: Plan) -> str:
    """Write what is finished of a plan: ``runs.csv``, ``summary.json``, ``summary.md``, ``scores.png``, and of language
    models the files of their report. Returns the table in Markdown."""
    runs: list[FinishedRun] = []
    summary: list[dict[str, Any]] = []
    for case, variant in itertools.product(plan.cases, plan.variants):
        finished = [cell for cell in plan.cells if cell.group == (case, variant) and is_finished(cell.folder)]
        labels = {plan.case_name: case, "variant": variant}
        of_group = [FinishedRun.read({**labels, "seed": cell.labels["seed"]}, cell.folder) for cell in finished]
        if of_group:
            runs += of_group
            summary.append({"case": case, "variant": variant, **summarize(of_group, plan.scores)})
    if not runs:
        return "no run is finished\n"
    files: dict[str, Any] = summary_files(runs, plan.scores, summary, variants_table(plan, summary))
    files["scores.png"] = png(draw(plan, summary))
    if plan.cells[0].recipe == "language_model":
        results = [{**run.metrics, **run.labels} for run in runs]
        for result in results:
            result["variant"] = " ".join(filter(None, (result[plan.case_name], result["variant"])))
        files.update(language_models.report(results))
    write_files(plan.output_dir, files)
    return files[SUMMARY_MD]


def variants_table(plan: Plan, summary: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a case and variant; ``points against`` are 100 times the difference of the mean first scores."""
    means = _means(plan, summary)
    rows = []
    for entry in summary:
        row = {plan.case_name: entry["case"]} if len(plan.cases) > 1 else {}
        row.update(variant=entry["variant"], runs=entry["runs"])
        for place, title in plan.scores.items():
            row[title] = mean_and_deviation(entry["scores"][place]["values"])
        if plan.reference is not None:
            reference = means.get((entry["case"], plan.reference), np.nan)
            points = 100 * (means[entry["case"], entry["variant"]] - reference)
            row[f"points against {plan.reference}"] = "" if np.isnan(points) else f"{points:+.1f}"
            if plan.margin is not None:
                near = "yes" if points >= -plan.margin else "no"
                row[f"within {plan.margin:g} points"] = "" if np.isnan(points) else near
        row["train minutes"] = f"{entry['train_seconds'] / 60:.1f}"
        rows.append(row)
    return rows


def _means(plan, summary):
    main = next(iter(plan.scores))
    return {(entry["case"], entry["variant"]): entry["scores"][main]["mean"] for entry in summary}


def draw(plan: Plan, summary: list[dict[str, Any]]) -> Any:
    """A figure of the first score: lines over numbered cases, with bars of one standard deviation over the seeds, or
    else a point for each variant."""
    has_lines = len(plan.cases) > 1 and all(case.isdigit() for case in plan.cases)
    return _draw_lines(plan, summary) if has_lines else _draw_points(plan, _means(plan, summary))


def _draw_lines(plan, summary):
    figure, axes = new_figure(9, 5)
    main, colors = next(iter(plan.scores)), {}
    for variant in plan.variants:
        entries = [entry for entry in summary if entry["variant"] == variant]
        color = colors.setdefault(variant.removesuffix(TWIN), COLORS[len(colors) % len(COLORS)])
        scores = [entry["scores"][main] for entry in entries]
        axes.errorbar(
            [int(entry["case"]) for entry in entries], [score["mean"] for score in scores],
            [score["standard_deviation"] or 0 for score in scores], fmt="--" if variant.endswith(TWIN) else "-",
            color=color, marker="o", ms=4, elinewidth=1, capsize=3, label=variant,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(map(int, plan.cases)), plan.cases)
    axes.set_xlabel(plan.case_name)
    axes.set_ylabel(plan.scores[main])
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def _draw_points(plan, means):
    values = list(means.values())
    figure, axes = new_figure(8, 1 + 0.28 * len(means), grid="y")
    colors = [COLORS[0] if variant == plan.reference else COLORS[1] for _, variant in means]
    axes.scatter(values, range(len(means)), color=colors, s=30, zorder=2)
    labels = [f"{case} {variant}  {value:.3f}".strip() for (case, variant), value in means.items()]
    axes.set_yticks(range(len(means)), labels, fontsize=8)
    axes.invert_yaxis()
    if len(plan.cases) == 1 and (plan.cases[0], plan.reference) in means and plan.margin is not None:
        axes.axvline(means[plan.cases[0], plan.reference] - plan.margin / 100, color=GRAY, ls="--", lw=1)
    axes.set_xlabel(next(iter(plan.scores.values())))
    return figure


# ---- runs of any recipe side by side


def compare_runs(folders: Sequence[Path]) -> str:
    """A Markdown table of the runs of some folders: the keys of their configurations that differ, parameters, minutes,
    scores. Raises InputError if a folder has no finished run."""
    configs = [read_run_config(folder / CONFIG_FILE) for folder in folders]
    keys = dict.fromkeys(key for config in configs for key in config if key != "output_dir")
    keys = [key for key in keys if any(config.get(key) != configs[0].get(key) for config in configs)]
    rows = []
    for folder, config in zip(folders, configs):
        metrics = read_json_object(folder / METRICS_FILE, "give the OUTPUT_DIR of a finished training run")
        row = {"run": folder.as_posix(), **{key: _shown(config.get(key)) for key in keys}}
        row["parameters"] = f"{metrics['parameters']:,}" if "parameters" in metrics else ""
        row["minutes"] = f"{metrics['train_seconds'] / 60:.1f}" if "train_seconds" in metrics else ""
        for split in ("dev", "test"):
            scores = (metrics.get(split) or {}).items()
            row.update({f"{split} {name}": f"{value:.4f}" for name, value in scores if isinstance(value, float)})
        rows.append(row)
    return as_markdown(rows, list(dict.fromkeys(name for row in rows for name in row)))


def _shown(value):
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else value
