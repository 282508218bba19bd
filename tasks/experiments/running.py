"""The runs of a plan, one after another, each in a process of its own; what is finished is not run again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

from tasks.common.errors import EXIT_BAD_INPUT, InputError
from tasks.common.files import write_json
from tasks.common.runs.life import METRICS_FILE
from tasks.common.training.trainer import last_checkpoint
from tasks.experiments.plan import check_unchanged
from tasks.recipes import get_recipe


def is_finished(cell):
    """Whether the run of a cell has left its scores."""
    return (cell.folder / METRICS_FILE).is_file()


def check_cells(recipe, cells):
    """Refuse cells that were trained, or begun, with other keys than they have now.

    Raises:
        InputError: there is such a cell.
    """
    for cell in cells:
        order = _order_file(cell)
        if cell.folder.is_dir() and order.is_file():
            before = json.loads(order.read_text(encoding="utf-8"))
            check_unchanged(cell.name, cell.folder, _compared(cell, **before), _compared(cell, recipe, cell.config))


def check_configs(recipe, cells):
    """Resolve the configuration of each cell, so that a wrong key of the last one is found before the first is trained.

    Args:
        recipe: its name.
        cells: list of :class:`tasks.experiments.plan.Cell`.

    Raises:
        InputError: there is no such recipe, or it refuses a configuration.
    """
    resolve = get_recipe(recipe).resolve
    for cell in cells:
        try:
            resolve(cell.config)
        except InputError as error:
            raise InputError(f"{cell.name}: {error}") from None


def _order_file(cell):
    return cell.folder.with_name(f"{cell.folder.name}.json")


def _compared(cell, recipe, config):
    """The keys of a run without those that say where it is."""
    places = ("device", "output_dir", *(["pretrained"] if cell.starts_from is not None else ()))
    return {"recipe": recipe, **{key: value for key, value in config.items() if key not in places}}


def run_apart(recipe, cell, tool):
    """Train a cell in a process of its own: a run that takes too much memory ends itself alone. A cell that another
    call is training is left to it.

    Args:
        recipe: name of the recipe's module.
        cell: :class:`tasks.experiments.plan.Cell`.
        tool: script that calls :func:`train_cell` for ``--cell FILE``.

    Returns:
        Why the cell is not finished, in words; "" if it is.

    Raises:
        InputError: the recipe refuses the configuration.
    """
    if cell.starts_from is not None and not (cell.starts_from / METRICS_FILE).is_file():
        return f"starts from {cell.starts_from}, which is not finished"
    with _claimed(cell.folder) as lock:
        if lock is None:
            return "is being trained by another call"
        if is_finished(cell):
            return ""
        order = _order_file(cell)
        write_json(order, {"recipe": recipe, "config": cell.config})
        # the process has the lock too: if this one is killed, it goes on and the cell stays claimed
        done = subprocess.run([sys.executable, str(tool), "--cell", str(order)], pass_fds=[lock.fileno()])
    if done.returncode == EXIT_BAD_INPUT:
        raise InputError(f"{cell.name}: the recipe cannot run it, as said above; mend the plan or the files")
    return f"failed with status {done.returncode}" if done.returncode else ""


@contextlib.contextmanager
def _claimed(folder):
    """The open lock file of a folder, which other processes do not get until the end of the block; None if another has
    it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the processes that have it
        except BlockingIOError:
            yield None
        else:
            yield lock


def train_cell(order):
    """What the process of :func:`run_apart` does: train, or go on from the last checkpoint of an interrupted run.

    Args:
        order: file that :func:`run_apart` wrote.
    """
    order = json.loads(Path(order).read_text(encoding="utf-8"))
    recipe, config = get_recipe(order["recipe"]), order["config"]
    folder = Path(config["output_dir"])
    if folder.is_dir():
        try:
            last_checkpoint(folder / "checkpoints")
        except InputError:  # ended before its first checkpoint: nothing to go on from
            shutil.rmtree(folder)
        else:
            recipe.resume(str(folder))
            return
    recipe.train(config)


def keep_scores_only(folder):
    """Remove the checkpoints of a finished run, which are larger than all else."""
    shutil.rmtree(Path(folder) / "checkpoints", ignore_errors=True)
