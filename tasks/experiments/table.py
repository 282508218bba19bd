"""Results of finished runs: for a plan, each run, and mean and deviation of each variant over its seeds; for any runs,
a table with the keys that differ."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paddle_rope.tasks.common.files import read_json_object, write_files
from paddle_rope.tasks.common.reports.tables import as_markdown, mean_and_deviation
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.training.run import CONFIG_FILE, METRICS_FILE
from paddle_rope.tasks.common.training.series import SUMMARY_MD, FinishedRun, is_finished, summarize, summary_files
from paddle_rope.tasks.experiments.plan import Plan


def write_tables(plan: Plan) -> str:
    """Write the results of a plan's finished runs: ``runs.csv``, ``summary.json``, ``summary.md``, and for language
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
    if plan.cells[0].recipe == "language_model":
        from paddle_rope.tasks.experiments import language_models  # with scipy, which compare_runs does not need

        results = [{**run.metrics, **run.labels} for run in runs]
        for result in results:
            result["variant"] = " ".join(filter(None, (result[plan.case_name], result["variant"])))
        files.update(language_models.report(results))
    write_files(plan.output_dir, files)
    return files[SUMMARY_MD]


def variants_table(plan: Plan, summary: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per case and variant; ``points against`` are 100 times the difference of the means of the first score."""
    main = next(iter(plan.scores))
    means = {(entry["case"], entry["variant"]): entry["scores"][main]["mean"] for entry in summary}
    rows = []
    for entry in summary:
        row = {plan.case_name: entry["case"]} if len(plan.cases) > 1 else {}
        row.update(variant=entry["variant"], runs=entry["runs"])
        for place, title in plan.scores.items():
            row[title] = mean_and_deviation(entry["scores"][place]["values"])
        if plan.reference is not None:
            reference = means.get((entry["case"], plan.reference))
            points = "" if reference is None else f"{100 * (entry['scores'][main]['mean'] - reference):+.1f}"
            row[f"points against {plan.reference}"] = points
        row["train minutes"] = f"{entry['train_seconds'] / 60:.1f}"
        rows.append(row)
    return rows


# ---- runs of any recipe side by side


def compare_runs(folders: Sequence[Path]) -> str:
    """A Markdown table of the runs in some folders: the configuration keys that differ, parameters, minutes and
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
    return as_markdown(rows)


def _shown(value):
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else value
