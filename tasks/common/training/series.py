"""A series: one configuration trained with several seeds, or once for each of its folds, and the results.

The runs go to ``OUTPUT_DIR/seed_N``, ``OUTPUT_DIR/fold_N`` or ``OUTPUT_DIR/seed_N/fold_M``; next to them,
``series.yaml`` is written first, and ``runs.csv``, ``summary.json`` and ``summary.md`` last. Finished runs are kept,
and interrupted ones continue from their last checkpoint.
"""

import contextlib
import itertools
import shutil
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from paddle_rope.machine import machine_in_words
from paddle_rope.tasks.common.errors import InputError, Interrupted, as_input_error
from paddle_rope.tasks.common.files import (
    atomic_writer,
    check_new_folder,
    json_line,
    locked,
    read_json_object,
    write_files,
)
from paddle_rope.tasks.common.process import is_first_process, own_command, quoted
from paddle_rope.tasks.common.reports.tables import as_csv, as_markdown, mean_and_deviation
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.training.arguments import parse_seeds
from paddle_rope.tasks.common.training.run import CONFIG_FILE, METRICS_FILE, refuse_links

SERIES_FILE = "series.yaml"  # recipe, seeds and configuration
RUNS_CSV, SUMMARY_JSON, SUMMARY_MD = "runs.csv", "summary.json", "summary.md"


class Member(NamedTuple):
    """One run of a series: its configuration, and ``seed`` and ``fold`` where they differ within the series."""

    config: dict[str, Any]
    labels: dict[str, int]

    @property
    def folder(self) -> Path:
        return Path(self.config["output_dir"])


def has_folds(config: dict[str, Any]) -> bool:
    """Whether a configuration is to be trained once for each of its folds."""
    return bool(config.get("folds")) and not config.get("fold")  # "" is not given


def members(config: dict[str, Any], seeds: list[int] | None) -> list[Member]:
    """The runs of a configuration with ``seeds`` (None: its own), with its folds, or with both."""
    folds = [{"fold": fold} for fold in range(1, int(config["folds"]) + 1)] if has_folds(config) else [{}]
    found = []
    for seed, fold in itertools.product([{"seed": seed} for seed in seeds or ()] or [{}], folds):
        labels = {**seed, **fold}
        folder = Path(config["output_dir"]).joinpath(*(f"{key}_{value}" for key, value in labels.items()))
        found.append(Member({**config, **labels, "output_dir": str(folder)}, labels))
    return found


def train_series(recipe: Any, config: dict[str, Any], seeds: list[int] | None = None) -> dict[str, Any] | None:
    """Train a series in this process, with ``seeds`` or the seed of the configuration; it may be called in several
    processes that train together. Returns the summary, see :func:`summarize`; None in processes other than the first.
    Raises InputError as the recipe does, or if no ``output_dir`` is given or it is not empty."""
    if not config.get("output_dir"):
        raise InputError("no 'output_dir': name it in the configuration file or with --output_dir PATH")
    recipe.resolve(dict(config))
    config = {**config, "output_dir": str(config["output_dir"])}  # YAML makes 2026-11-28 a date
    with _begun(Path(config["output_dir"]), {"recipe": recipe.name, "seeds": seeds, "config": config}):
        return _train_members(recipe, config["output_dir"], members(config, seeds))


def read_series(folder: str | Path) -> dict[str, Any]:
    """The content of :data:`SERIES_FILE` in the folder of a series: ``recipe``, ``seeds`` and ``config``; raises
    InputError if it is damaged."""
    file = Path(folder) / SERIES_FILE
    series = read_run_config(file)
    if not isinstance(series.get("recipe"), str) or not isinstance(series.get("config"), dict) or "seeds" not in series:
        raise InputError(f"{file}: is damaged; train the series anew, in another folder")
    return series


def members_of(folder: str | Path, recipe: Any) -> list[Member]:
    """The runs of a series that was begun in ``folder``, which may have been moved. Raises as :func:`read_series`."""
    series = read_series(folder)
    config = {**series["config"], "output_dir": str(folder)}
    with as_input_error(f"{Path(folder) / SERIES_FILE}: ", InputError):
        seeds = None if series["seeds"] is None else parse_seeds(series["seeds"])
        recipe.resolve(dict(config))
    return members(config, seeds)


def resume_series(recipe: Any, folder: str | Path) -> dict[str, Any] | None:
    """Continue a series that was interrupted; returns what :func:`train_series` does. Raises InputError if the series
    is complete, or another process works on it."""
    refuse_links(folder)
    runs = members_of(folder, recipe)
    if (Path(folder) / SUMMARY_JSON).is_file():
        raise InputError(f"{folder}: all runs are complete; their scores are in {Path(folder) / SUMMARY_JSON}")
    return _train_members(recipe, folder, runs)


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder has written its scores."""
    return (folder / METRICS_FILE).is_file()


def train_unless_finished(recipe: Any, config: dict[str, Any], way: str | None = None) -> None:
    """Train or resume a run in this process, unless it is finished. ``way`` is what :func:`_way_of` returned before
    processes that train together began; None calls it now. Raises InputError if another process works on it."""
    folder = Path(config["output_dir"])
    way = way or _way_of(folder)
    if way != "none" and is_first_process() and folder.is_dir():
        with locked(folder):
            if way == "train":  # it ended before its configuration was written
                shutil.rmtree(folder)
    if way == "resume":
        recipe.resume(str(folder))
    elif way == "train":
        recipe.train(config)


def _way_of(folder):
    if is_finished(folder):
        return "none"
    return "resume" if (folder / CONFIG_FILE).is_file() else "train"


def _train_members(recipe, folder, runs):
    # Checked for all runs before training, because later the others would see what the first process has written.
    ways = [_way_of(run.folder) for run in runs]
    for number, (run, way) in enumerate(zip(runs, ways), 1):
        name = " / ".join(f"{key} {value}" for key, value in run.labels.items())
        print(f"---- {name} ({number} of {len(runs)})", flush=True)
        try:
            train_unless_finished(recipe, run.config, way)
        except Interrupted as error:
            how = f"go on with: {own_command()} train --resume {quoted(folder)}"
            raise Interrupted(error.number, f"{folder}: ended by a signal; {how}") from None
    return _write_summary(recipe, folder, runs) if is_first_process() else None


@contextlib.contextmanager
def _begun(folder, series):
    """Make the folder of a new series; remove it if an InputError ends the series before its first run has written."""
    if not is_first_process():
        yield
        return
    check_new_folder(folder)
    made = [path for path in folder.parents if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_writer(folder / SERIES_FILE) as file:
        yaml.safe_dump(series, file, allow_unicode=True, sort_keys=False)
    try:
        yield
    except InputError:
        if [path.name for path in folder.rglob("*") if path.is_file()] == [SERIES_FILE]:
            shutil.rmtree(folder)
            for path in made:
                path.rmdir()
        raise


# ---- results of finished runs


class FinishedRun(NamedTuple):
    """The results of a finished run."""

    labels: dict[str, Any]  # which run of a series or plan
    folder: Path
    metrics: dict[str, Any]  # of its metrics.json

    @classmethod
    def read(cls, labels: dict[str, Any], folder: Path) -> "FinishedRun":
        remedy = "remove the folder of this run, and train it anew"
        return cls(labels, folder, read_json_object(folder / METRICS_FILE, remedy))

    def score(self, place: str) -> float:
        """The score at a dotted place of the metrics, such as ``dev.f1``; raises InputError if there is none."""
        value = self.metrics
        for key in place.split("."):
            if not isinstance(value, dict) or key not in value:
                raise InputError(f"{self.folder / METRICS_FILE}: has no {place}; correct the scores of the plan")
            value = value[key]
        return value


def summarize(runs: list[FinishedRun], places: Iterable[str]) -> dict[str, Any]:
    """The combined results of the runs of one configuration: dict with ``runs``, their number; ``train_seconds``,
    the mean; and ``scores``, from each of ``places`` to ``values``, their ``mean`` and ``standard_deviation`` (of the
    sample, n - 1; None for one value). The values are one per seed, each the mean over its folds, or one per fold of
    a single seed."""
    scores = {}
    for place in places:
        seeds: dict[Any, list[float]] = {}
        for run in runs:
            seeds.setdefault(run.labels.get("seed"), []).append(run.score(place))
        values = next(iter(seeds.values())) if len(seeds) == 1 else list(map(statistics.fmean, seeds.values()))
        deviation = statistics.stdev(values) if len(values) > 1 else None
        scores[place] = {"values": values, "mean": statistics.fmean(values), "standard_deviation": deviation}
    seconds = statistics.fmean(run.metrics.get("train_seconds", 0.0) for run in runs)
    return {"runs": len(runs), "train_seconds": seconds, "scores": scores}


def _write_summary(recipe, folder, series):
    """Write, print and return the result of :func:`summarize`, with the ensemble's score as ``ensemble``."""
    runs = [FinishedRun.read(run.labels, run.folder) for run in series]
    found = [(split, name) for split in ("dev", "test") for name in recipe.scores]
    titles = {f"{split}.{name}": f"{split} {name}" for split, name in found if name in runs[0].metrics.get(split, ())}
    summary = summarize(runs, titles)
    if len(runs) > 1 and "fold" not in runs[0].labels:
        together = recipe.score_ensemble(series[0].config, [str(run.folder) for run in runs])
        for place, score in summary["scores"].items() if together else ():
            split, name = place.split(".")
            score["ensemble"] = together[split][name]
    has_seeds = len({run.labels.get("seed") for run in runs}) > 1 or "fold" not in runs[0].labels
    label = "seed" if has_seeds else "fold"
    names = list(dict.fromkeys(f"{label} {run.labels[label]}" for run in runs))
    table = []
    for place, score in summary["scores"].items():
        row = {"": titles[place], **{name: f"{value:.4f}" for name, value in zip(names, score["values"])}}
        row["mean ± deviation"] = mean_and_deviation(score["values"])
        table.append({**row, **({"ensemble": f"{score['ensemble']:.4f}"} if "ensemble" in score else {})})
    files = summary_files(runs, titles, [summary], table)
    write_files(Path(folder), files)
    print(files[SUMMARY_MD], end="")
    return summary


def summary_files(
    runs: list[FinishedRun], titles: dict[str, str], summaries: list[dict[str, Any]], table: list[dict[str, Any]]
) -> dict[str, str]:
    """The content of ``runs.csv``, ``summary.json`` and ``summary.md``, which holds the table; ``titles`` name the
    scores by their place in the metrics."""
    machine, seeds = machine_in_words(), dict.fromkeys(run.labels["seed"] for run in runs if "seed" in run.labels)
    text = f"{machine}{'; seeds ' * bool(seeds)}{', '.join(map(str, seeds))}\n\n{as_markdown(table)}"
    content = json_line({"machine": machine, "variants": summaries}, indent=2)
    rows = []
    for run in runs:
        scores = {title: run.score(place) for place, title in titles.items()}
        facts = {name: run.metrics.get(name, "") for name in ("train_seconds", "parameters")}
        rows.append({**run.labels, **scores, **facts})
    return {RUNS_CSV: as_csv(rows), SUMMARY_JSON: content, SUMMARY_MD: text}
