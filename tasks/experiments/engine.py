"""Many training runs at one call: several seeds and folds of one configuration, or the plan of a comparison."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

from tasks.common.cli.own_command import own_command
from tasks.common.cli.run_config import read_run_config
from tasks.common.errors import InputError, Interrupted
from tasks.common.files import atomic_writer, check_makeable, check_output_dir, claim_output_dir
from tasks.common.process import is_first_process
from tasks.common.runs.life import refuse_links
from tasks.experiments import table
from tasks.experiments.cells import TAKEN, check_cells, check_configs, is_finished, run_cell, run_planned, way_of
from tasks.experiments.plan import Plan, parse_seeds, read_plan, series_plan
from tasks.experiments.reports import get_report
from tasks.recipes import get_recipe

SERIES_FILE = "series.yaml"  # recipe, seeds and configuration of a series; written first


def train(recipe: str, config: dict[str, Any]) -> dict[str, Any] | None:
    """Train one run of a recipe, or, with the key ``seeds`` or ``folds``, a series: see :func:`train_series`."""
    config = dict(config)
    seeds = parse_seeds(config.pop("seeds")) if config.get("seeds") is not None else None
    if seeds or (config.get("folds") is not None and config.get("fold") is None):
        return train_series(recipe, config, seeds)
    return get_recipe(recipe).train(config)


def resume(recipe: str, folder: str | Path) -> dict[str, Any] | None:
    """Continue one run of a recipe, or a series, that was interrupted."""
    return resume_series(folder) if (Path(folder) / SERIES_FILE).is_file() else get_recipe(recipe).resume(str(folder))


def train_series(recipe: str, config: dict[str, Any], seeds: list[int] | None = None) -> dict[str, Any] | None:
    """Train one configuration with several seeds, or once for each of its ``folds``, or both, in this process.

    The runs go to ``OUTPUT_DIR/seed_N``, ``OUTPUT_DIR/fold_N`` or ``OUTPUT_DIR/seed_N/fold_M``; beside them are written
    ``runs.csv``, ``summary.json`` and ``summary.md``. It may be called in several processes that train together.

    Args:
        recipe: name of the recipe.
        config: configuration keys, with ``output_dir``.
        seeds: whole numbers; None for that of the configuration.

    Returns:
        The summary, see :func:`tasks.experiments.table.summarize`; None in processes other than the first.

    Raises:
        InputError: as of the recipe, or no ``output_dir`` is given or it is taken.
    """
    if not config.get("output_dir"):
        raise InputError("no 'output_dir': name it in the configuration file or with --output_dir PATH")
    get_recipe(recipe).resolve(dict(config))
    with _begun(Path(config["output_dir"]), {"recipe": recipe, "seeds": seeds, "config": config}):
        return _run_series(series_plan(recipe, config, seeds))


def resume_series(folder: str | Path) -> dict[str, Any] | None:
    """Continue a series of seeds or folds that was interrupted; returns what :func:`train_series` does.

    Args:
        folder: its ``output_dir``, which may have been moved.

    Raises:
        InputError: the series is complete, or another process works on it.
    """
    refuse_links(folder)
    plan = read_series(folder)
    if (Path(folder) / table.SUMMARY_JSON).is_file():
        raise InputError(f"{folder}: all runs are complete; their scores are in {Path(folder) / table.SUMMARY_JSON}")
    return _run_series(plan)


def read_series(folder: str | Path) -> Plan:
    """The plan of a series that was begun; raises InputError if what is kept of it is damaged."""
    file = Path(folder) / SERIES_FILE
    series = read_run_config(file)
    if not isinstance(series.get("recipe"), str) or not isinstance(series.get("config"), dict) or "seeds" not in series:
        raise InputError(f"{file}: is damaged; train the series anew, in another folder")
    config = {**series["config"], "output_dir": str(folder)}
    try:
        seeds = None if series["seeds"] is None else parse_seeds(series["seeds"])
        get_recipe(series["recipe"]).resolve(dict(config))
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return series_plan(series["recipe"], config, seeds)


def run_plan(
    path: str | Path,
    output_dir: str | Path | None = None,
    only: Iterable[str] = (),
    cases: Iterable[str] = (),
    seeds: str | list[int] | None = None,
    settings: dict[str, Any] | None = None,
    device: str | None = None,
    tables_only: bool = False,
) -> dict[str, str]:
    """Train what is not finished of a plan; write and print the tables of all that is.

    Several calls, in processes of their own, may work on one plan: each takes runs that no other has.

    Args:
        path: YAML file of the plan.
        output_dir: instead of the plan's.
        only, cases: names of the variants, and of the cases, to train; none for all.
        seeds: instead of the plan's.
        settings: configuration keys of all runs, instead of the plan's.
        device: of paddle; None takes a GPU where there is one.
        tables_only: train nothing.

    Returns:
        dict from the name of each run that could not be finished to the reason, in words.

    Raises:
        InputError: the plan is wrong, or there are results of other keys than it now has.
    """
    plan = read_plan(path, output_dir, seeds, settings)
    check_makeable(plan.output_dir, "--output_dir")
    for option, wanted, known in (("only", only, plan.variants), ("cases", cases, plan.cases)):
        for name in wanted or ():
            if name not in known:
                raise InputError(f"--{option} {name}: the plan has {', '.join(known)}")
    if plan.report is not None:
        get_report(plan.report)
    check_cells(plan.cells)
    failed = {}
    if not tables_only:
        cells = [cell for cell in plan.cells if cell.group[0] in (cases or plan.cases)]
        cells = [cell for cell in cells if cell.group[1] in (only or plan.variants)]
        for cell in cells:
            cell.config.update({} if device is None else {"device": device})
        check_configs(cells)
        for cell in tqdm(cells, unit="run", disable=not sys.stderr.isatty()):
            if not is_finished(cell):
                print(f"---- {cell.name}", flush=True)
                try:
                    failed[cell.name] = run_planned(cell, plan.apart)
                except Interrupted as error:
                    why = f"{cell.folder}: ended by a signal; the same command goes on with it"
                    raise Interrupted(error.number, why) from None
                table.write_tables(plan)
    print(table.write_tables(plan)[1], end="")
    return {name: reason for name, reason in failed.items() if reason}


def _run_series(plan: Plan) -> dict[str, Any] | None:
    # All looked at before the first is trained: processes that train together would else see what the first one makes.
    ways = [way_of(cell) for cell in plan.cells]
    for number, (cell, way) in enumerate(zip(plan.cells, ways), 1):
        print(f"---- {cell.name} ({number} of {len(plan.cells)})", flush=True)
        try:
            is_mine = run_cell(cell, way)
        except Interrupted as error:
            how = f"go on with: {own_command()} train --resume {plan.output_dir}"
            raise Interrupted(error.number, f"{plan.output_dir}: ended by a signal; {how}") from None
        if not is_mine:
            raise InputError(f"{cell.folder}: {TAKEN}; wait for its end")
    if not is_first_process():
        return None
    (summary,), text = table.write_tables(plan)
    print(text, end="")
    return summary


@contextlib.contextmanager
def _begun(folder, series):
    """Makes the folder of a new series with its configuration in it, or raises InputError where it is taken. Takes them
    away again where an InputError ends it before its first run has written anything."""
    if not is_first_process():
        yield
        return
    check_output_dir(folder)
    made = [path for path in folder.parents if not path.exists()]
    claim_output_dir(folder)
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
