"""A series of training runs: one configuration with several seeds or folds, or the runs of a plan of experiments.

Finished runs are kept, and interrupted ones continue from their last checkpoint. The results of all finished runs are
in ``runs.csv``, ``summary.json`` and ``summary.md``. Several seeds and folds of one configuration have the folders
``OUTPUT_DIR/seed_N/fold_M``, or one of both; ``series.yaml`` is written first.
"""

import contextlib
import itertools
import shutil
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

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
from paddle_rope.tasks.common.process import is_first_process, own_command, process_count, quoted
from paddle_rope.tasks.common.reports.tables import as_csv, as_markdown, mean_and_deviation
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.training.arguments import parse_seeds
from paddle_rope.tasks.common.training.run import (
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    METRICS_FILE,
    MODEL_FOLDER,
    refuse_links,
)
from paddle_rope.tasks.common.training.settings import resolve

SERIES_FILE = "series.yaml"  # recipe, seeds and configuration


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder has written its scores."""
    return (folder / METRICS_FILE).is_file()


@dataclass(frozen=True)
class Cell:
    """One training run of a series: its recipe, its configuration, and ``labels`` that tell it from the others:
    ``case`` and ``variant`` in a plan, ``seed`` and ``fold``. ``starts_from`` is the folder of the run whose trained
    weights it starts from; that run has to be finished first."""

    recipe: Any
    config: dict[str, Any]
    labels: dict[str, Any]
    starts_from: Path | None = None

    @property
    def folder(self) -> Path:
        return Path(self.config["output_dir"])

    @property
    def group(self) -> tuple[str, ...]:
        """(case, variant) in a plan: what runs with other seeds and folds have in common."""
        return tuple(value for key, value in self.labels.items() if key in ("case", "variant"))

    @property
    def name(self) -> str:
        numbers = (f"{key} {self.labels[key]}" for key in ("seed", "fold") if key in self.labels)
        return " / ".join(filter(None, (*self.group, *numbers)))

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The content of ``metrics.json`` of the finished run."""
        return read_json_object(self.folder / METRICS_FILE, "remove the folder of this run, and train it anew")

    def score(self, place: str) -> float:
        """The score at a dotted place of the metrics, such as ``dev.f1``; raises InputError if there is none."""
        value = self.metrics
        for key in place.split("."):
            if not isinstance(value, dict) or key not in value:
                raise InputError(f"{self.folder / METRICS_FILE}: has no {place}; correct the scores of the plan")
            value = value[key]
        return value

    def train(self, action: str) -> None:
        """``"train"`` the run in this process or ``"resume"`` it. Raises InputError if another process works on it, or
        the run that it starts from is not finished."""
        if self.starts_from is not None and not is_finished(self.starts_from):
            raise InputError(f"starts from {self.starts_from}, which is not finished")
        if is_first_process() and self.folder.is_dir():
            with locked(self.folder):
                if action == "train":  # it ended before its configuration was written
                    shutil.rmtree(self.folder)
        from paddle_rope.tasks.common.training import loop  # imports Paddle

        if action == "resume":
            loop.resume(self.recipe, self.folder)
        else:
            loop.train(self.recipe, self.config)


@dataclass(frozen=True)
class Series:
    """Training runs, and how their results are shown."""

    output_dir: Path  # folder of all runs and tables
    cells: list[Cell]  # in the order in which they are trained
    scores: dict[str, str] | None = None  # dotted place in ``metrics.json`` -> name in tables; None: the recipe's
    case_name: str = "case"  # what the cases are called
    reference: str | None = None  # the variant that the others are compared with, by the first score
    report: Callable[[list[dict[str, Any]]], dict[str, str | bytes]] | None = None  # labels and metrics -> more files

    def values(self, label: str) -> list[Any]:
        """The different values of a label, such as ``"variant"``, in order."""
        return list(dict.fromkeys(cell.labels[label] for cell in self.cells if label in cell.labels))


def cells_of(
    recipe: Any,
    config: dict[str, Any],
    seeds: Iterable[int] | None = None,
    folds: int | None = None,
    starts_from: Path | None = None,
    **labels: str,
) -> list[Cell]:
    """The runs of a configuration with several seeds, folds, or both, in their folders within ``output_dir``.
    ``starts_from`` is the folder of as many other runs, from whose trained weights they start."""
    of_seeds = [{"seed": seed} for seed in seeds or ()] or [{}]
    of_folds = [{"fold": fold} for fold in range(1, (folds or 0) + 1)] or [{}]
    cells = []
    for numbers in ({**seed, **fold} for seed, fold in itertools.product(of_seeds, of_folds)):
        place = Path(*(f"{key}_{number}" for key, number in numbers.items()))
        of_run = {**config, **numbers, "output_dir": str(Path(config["output_dir"]) / place)}
        start = None if starts_from is None else starts_from / place
        if start is not None:
            of_run["pretrained"] = str(start / MODEL_FOLDER)
        cells.append(Cell(recipe, of_run, {**labels, **numbers}, start))
    return cells


def train_cells(series: Series, cells: list[Cell], remedy: str, goes_on: bool = False) -> dict[str, str]:
    """Train or resume the unfinished ones of some ``cells`` in this process, and write the tables after each. Their
    checkpoints, which are larger than all else, are removed.

    With ``goes_on``, a run that raises InputError does not stop the others; returns the reasons by the names of the
    runs. If a signal ends a run, the message of Interrupted says what to do next: ``remedy``.
    """
    # Processes that train together look before training: later the others would see what the first one has written.
    # A process alone looks when it comes to a run, which another one may have finished meanwhile.
    together, failed = process_count() > 1, {}
    actions = {cell.name: _action(cell.folder) for cell in cells} if together else {}
    for number, cell in enumerate(tqdm(cells, unit="run", disable=not sys.stderr.isatty()), 1):
        action = actions.get(cell.name, "") if together else _action(cell.folder)
        if not action:
            continue
        print(f"---- {cell.name} ({number} of {len(cells)})", flush=True)
        try:
            cell.train(action)
        except Interrupted as error:
            raise Interrupted(error.number, f"{cell.folder}: ended by a signal; {remedy}") from None
        except InputError as error:
            if not goes_on:
                raise
            if not is_finished(cell.folder):
                failed[cell.name] = str(error)
        if not together and is_finished(cell.folder):
            shutil.rmtree(cell.folder / CHECKPOINTS_FOLDER, ignore_errors=True)
        if is_first_process():
            write_tables(series)
    return failed


def _action(folder):
    if is_finished(folder):
        return ""
    return "resume" if (folder / CONFIG_FILE).is_file() else "train"


# ---- one configuration


def has_folds(config: dict[str, Any]) -> bool:
    """Whether a configuration is to be trained once for each of its folds."""
    return bool(config.get("folds")) and not config.get("fold")  # "" is not given


def train_series(recipe: Any, config: dict[str, Any], seeds: list[int] | None = None) -> dict[str, Any] | None:
    """Train a configuration in this process with ``seeds`` (None: its own), with its folds, or with both; it may be
    called in several processes that train together. Returns the summary, see :func:`summarize`; None in processes other
    than the first. Raises InputError as the recipe does, or if no ``output_dir`` is given or it is not empty."""
    if not config.get("output_dir"):
        raise InputError("no 'output_dir': name it in the configuration file or with --output_dir PATH")
    config = {**config, "output_dir": str(config["output_dir"])}  # YAML makes 2026-11-28 a date
    series = _series(recipe, config, seeds)
    with _begun(series.output_dir, {"recipe": recipe.arguments.recipe, "seeds": seeds, "config": config}):
        return _train_all(series)


def resume_series(folder: str | Path, get_recipe: Callable[[str], Any]) -> dict[str, Any] | None:
    """Continue a series that was interrupted; returns what :func:`train_series` does, also if it is complete. Raises
    InputError if its file is damaged, or another process works on it."""
    refuse_links(folder)
    return _train_all(begun_series(folder, get_recipe))


def begun_series(folder: str | Path, get_recipe: Callable[[str], Any]) -> Series:
    """The series that was begun in ``folder``, which may have been moved. Raises InputError if its file is damaged."""
    file = Path(folder) / SERIES_FILE
    begun = read_run_config(file)
    name, config, seeds = (begun.get(key) for key in ("recipe", "config", "seeds"))
    if not isinstance(name, str) or not isinstance(config, dict) or "seeds" not in begun:
        raise InputError(f"{file}: is damaged; train the series anew, in another folder")
    with as_input_error(f"{file}: ", InputError):
        seeds = None if seeds is None else parse_seeds(seeds)
        return _series(get_recipe(name), {**config, "output_dir": str(folder)}, seeds)


def _series(recipe, config, seeds):
    resolve(config, recipe.arguments)
    folds = int(config["folds"]) if has_folds(config) else None
    return Series(Path(config["output_dir"]), cells_of(recipe, config, seeds, folds))


def _train_all(series):
    how = f"go on with: {own_command()} train --resume {quoted(series.output_dir)}"
    train_cells(series, series.cells, how)
    if not is_first_process():
        return None
    first, *others = series.cells
    is_ensemble = others and "fold" not in first.labels
    folders = [str(cell.folder) for cell in series.cells]
    together = first.recipe.score_ensemble(first.config, folders) if is_ensemble else None
    (summary,), table = write_tables(series, together)
    print(table, end="")
    return summary


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


def write_tables(
    series: Series, together: dict[str, dict[str, float]] | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Write the results of the finished runs of a series: ``runs.csv``, ``summary.json``, ``summary.md``, and the files
    of its report. ``together`` are the scores, by split, of the ensemble of all runs. Returns what :func:`summarize`
    does for each variant, and the content of ``summary.md``."""
    finished: dict[tuple, list[Cell]] = {cell.group: [] for cell in series.cells}
    for cell in series.cells:
        if is_finished(cell.folder):
            finished[cell.group].append(cell)
    runs = list(itertools.chain(*finished.values()))
    if not runs:
        return [], "no run is finished\n"
    titles = series.scores or {
        f"{split}.{name}": f"{split} {name}"
        for split in ("dev", "test")
        for name in runs[0].recipe.arguments.SCORES
        if name in runs[0].metrics.get(split, ())
    }
    summary = []
    for group, cells in finished.items():
        if cells:
            summary.append({**dict(zip(("case", "variant"), group)), **summarize(cells, titles)})
    for place, score in summary[0]["scores"].items() if together else ():
        split, name = place.split(".")
        score["ensemble"] = together[split][name]
    table = variants_table(series, titles, summary) if runs[0].group else runs_table(runs, titles, summary[0])
    machine, seeds = machine_in_words(), dict.fromkeys(run.labels["seed"] for run in runs if "seed" in run.labels)
    of_seeds = f"seeds {', '.join(map(str, seeds))}" if seeds else ""
    of_runs = f"{len(runs)} of {len(series.cells)} runs" if len(runs) < len(series.cells) else ""
    rows = []
    for run in runs:
        labels = {series.case_name if key == "case" else key: value for key, value in run.labels.items()}
        scores = {title: run.score(place) for place, title in titles.items()}
        rows.append({**labels, **scores, **{key: run.metrics.get(key, "") for key in ("train_seconds", "parameters")}})
    files = {
        "runs.csv": as_csv(rows),
        "summary.json": json_line({"machine": machine, "variants": summary}, indent=2),
        "summary.md": f"{'; '.join(filter(None, (machine, of_seeds, of_runs)))}\n\n{as_markdown(table)}",
    }
    if series.report is not None:
        named = ({**run.labels, "variant": " ".join(filter(None, run.group))} for run in runs)
        files |= series.report([{**run.metrics, **labels} for run, labels in zip(runs, named)])
    write_files(series.output_dir, files)
    return summary, files["summary.md"]


def summarize(runs: list[Cell], places: Iterable[str]) -> dict[str, Any]:
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


def runs_table(runs: list[Cell], titles: dict[str, str], summary: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per score of the runs of one configuration: its values, their mean and deviation, and the ensemble's."""
    label = "fold" if len({run.labels.get("seed") for run in runs}) == 1 and "fold" in runs[0].labels else "seed"
    names = list(dict.fromkeys(f"{label} {run.labels[label]}" for run in runs))
    rows = []
    for place, score in summary["scores"].items():
        row = {"": titles[place], **{name: f"{value:.4f}" for name, value in zip(names, score["values"])}}
        row["mean ± deviation"] = mean_and_deviation(score["values"])
        rows.append({**row, **({"ensemble": f"{score['ensemble']:.4f}"} if "ensemble" in score else {})})
    return rows


def variants_table(series: Series, titles: dict[str, str], summary: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per case and variant; ``points against`` are 100 times the difference of the means of the first score."""
    main = next(iter(titles))
    means = {(entry["case"], entry["variant"]): entry["scores"][main]["mean"] for entry in summary}
    rows = []
    for entry in summary:
        row = {series.case_name: entry["case"]} if len(series.values("case")) > 1 else {}
        row.update(variant=entry["variant"], runs=entry["runs"])
        for place, title in titles.items():
            row[title] = mean_and_deviation(entry["scores"][place]["values"])
        if series.reference is not None:
            reference = means.get((entry["case"], series.reference))
            points = "" if reference is None else f"{100 * (entry['scores'][main]['mean'] - reference):+.1f}"
            row[f"points against {series.reference}"] = points
        row["train minutes"] = f"{entry['train_seconds'] / 60:.1f}"
        rows.append(row)
    return rows
