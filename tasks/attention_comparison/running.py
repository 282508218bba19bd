"""The runs of a plan, one after another, each in a process of its own; what is finished is not run again."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tasks.common.errors import EXIT_BAD_INPUT, InputError
from tasks.common.files import write_json
from tasks.common.runs import METRICS_FILE
from tasks.common.trainer import last_checkpoint


def is_finished(cell):
    """Whether the run of a cell has left its scores."""
    return (cell.folder / METRICS_FILE).is_file()


def run_apart(recipe, cell, tool):
    """Train a cell in a process of its own: a run that takes too much memory ends itself alone. A cell that another
    call is training is left to it.

    Args:
        recipe: name of the recipe's module.
        cell: :class:`tasks.attention_comparison.plan.Cell`.
        tool: script that calls :func:`train_cell` for ``--cell FILE``.

    Returns:
        Why the cell is not finished, in words; "" if it is.

    Raises:
        InputError: the recipe refuses the configuration.
    """
    if cell.starts_from is not None and not (cell.starts_from / METRICS_FILE).is_file():
        return f"starts from {cell.starts_from}, which is not finished"
    with _claimed(cell.folder) as lock, tempfile.TemporaryDirectory() as folder:
        if lock is None:
            return "is being trained by another call"
        if is_finished(cell):
            return ""
        order = Path(folder) / "cell.json"
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
    recipe, config = importlib.import_module(order["recipe"]), order["config"]
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
