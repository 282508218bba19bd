"""Train the runs of a plan: finished ones stay, interrupted ones continue from their last checkpoint."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tasks.common.cli.streams import on_terminal
from tasks.common.errors import EXIT_BAD_INPUT, InputError, Interrupted
from tasks.common.files import check_makeable, read_json_object, write_json
from tasks.common.process import prepare
from tasks.common.runs.interruption import interruptible
from tasks.common.runs.run_folder import CHECKPOINTS_FOLDER
from tasks.common.training.series import TAKEN, claimed, is_finished, train_unless_finished
from tasks.experiments.plan import Cell, check_unchanged, read_plan
from tasks.experiments.table import get_report, write_tables
from tasks.recipes import get_recipe

BUSY = 75  # exit status: another process has the run


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

    Several calls, in different processes, may work on one plan: each takes runs that no other has.

    Args:
        path: YAML file of the plan.
        output_dir: instead of the plan's.
        only, cases: names of the variants, and of the cases, to train; none for all.
        seeds: instead of the plan's.
        settings: configuration keys of all runs, instead of the plan's.
        device: of paddle; None takes a GPU if there is one.
        tables_only: train nothing.

    Returns:
        The reason, in words, for each run that could not be finished, by its name.

    Raises:
        InputError: the plan is wrong, or there are results of other keys than it now has.
    """
    plan = read_plan(path, output_dir, seeds, settings)
    check_makeable(plan.output_dir, "--output_dir")
    for option, names, known in (("only", only, plan.variants), ("cases", cases, plan.cases)):
        for name in names:
            if name not in known:
                raise InputError(f"--{option} {name}: the plan has {', '.join(known)}")
    if plan.report is not None:
        get_report(plan.report)
    check_kept_keys(plan.cells)
    failed = {}
    cells = [cell for cell in plan.cells if cell.group[0] in (cases or plan.cases)]
    cells = [] if tables_only else [cell for cell in cells if cell.group[1] in (only or plan.variants)]
    for cell in cells:
        cell.config.update({} if device is None else {"device": device})
    check_configs(cells)
    for cell in tqdm(cells, unit="run", disable=not sys.stderr.isatty()):
        if not is_finished(cell.folder):
            print(f"---- {cell.name}", flush=True)
            try:
                failed[cell.name] = train_cell(cell, plan.apart)
            except Interrupted as error:
                message = f"{cell.folder}: ended by a signal; the same command continues it"
                raise Interrupted(error.number, message) from None
            write_tables(plan)
    print(write_tables(plan), end="")
    return {name: reason for name, reason in failed.items() if reason}


def train_cell(cell: Cell, apart: bool) -> str:
    """Train a run and keep its scores and its model; its checkpoints, which are larger than all else, are removed.

    Args:
        cell: the run.
        apart: in its own process, so that a run that takes too much memory ends itself alone.

    Returns:
        Why the run is not finished, in words; "" if it is.

    Raises:
        InputError: the recipe refuses the configuration.
    """
    if cell.starts_from is not None and not is_finished(cell.starts_from):
        return f"starts from {cell.starts_from}, which is not finished"
    with claimed(cell.folder) as is_free:
        if not is_free:
            return TAKEN
        if not is_finished(cell.folder):
            write_json(_keys_file(cell), {"recipe": cell.recipe, "config": cell.config})
    if apart:
        status = train_apart(cell.recipe, cell.config)
        if status == EXIT_BAD_INPUT:
            raise InputError(f"{cell.name}: the recipe cannot run it, see above; correct the plan or the files")
    else:
        status = 0 if train_unless_finished(get_recipe(cell.recipe), cell.config) else BUSY
    if status:
        return TAKEN if status == BUSY else f"failed with status {status}"
    shutil.rmtree(cell.folder / CHECKPOINTS_FOLDER, ignore_errors=True)
    return ""


def train_apart(recipe: str, config: dict[str, Any]) -> int:
    """Train a run in a new process; returns its exit status. A signal to this process is passed on to it, so that it
    can write a checkpoint; when it has ended, Interrupted is raised."""
    process = multiprocessing.get_context("spawn").Process(target=_train_and_exit, args=(recipe, config))
    with interruptible():
        process.start()
        try:
            process.join()
        except Interrupted as error:
            if error.number != signal.SIGINT:  # Ctrl-C has reached it, too
                os.kill(int(process.pid or 0), error.number)
            process.join()
            raise
    return process.exitcode or 0


def _train_and_exit(recipe, config):
    @on_terminal
    def train(argv):
        prepare()
        return 0 if train_unless_finished(get_recipe(recipe), config) else BUSY

    sys.exit(train())


def _keys_file(cell):
    return cell.folder.with_name(f"{cell.folder.name}.json")


def check_kept_keys(cells: Iterable[Cell]) -> None:
    """Raise InputError for a run that was trained, or begun, with other keys than it has now."""
    for cell in cells:
        path = _keys_file(cell)
        if cell.folder.is_dir() and path.is_file():
            kept = read_json_object(path, "remove it together with the folder of its name, and train that run anew")
            before = _compared(cell, kept.get("recipe"), kept.get("config") or {})
            check_unchanged(cell.name, cell.folder, before, _compared(cell, cell.recipe, cell.config))


def _compared(cell, recipe, config):
    """The recipe and the keys of a run without those that say where it is."""
    places = ("device", "output_dir", *(["pretrained"] if cell.starts_from is not None else ()))
    return {"recipe": recipe, **{key: value for key, value in config.items() if key not in places}}


def check_configs(cells: Iterable[Cell]) -> None:
    """Resolve the configuration of each run, so that a wrong key of the last one is found before the first is trained;
    raises InputError if there is no such recipe, or it refuses a configuration."""
    for cell in cells:
        try:
            get_recipe(cell.recipe).resolve(dict(cell.config))
        except InputError as error:
            raise InputError(f"{cell.name}: {error}") from None
