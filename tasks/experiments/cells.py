"""The runs of a plan: finished ones stay, interrupted ones continue from their last checkpoint."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from tasks.common.errors import EXIT_BAD_INPUT, InputError
from tasks.common.files import read_json_object, write_json
from tasks.common.process import is_first_process
from tasks.common.runs.life import CHECKPOINTS_FOLDER, METRICS_FILE
from tasks.common.runs.locks import locked
from tasks.common.training.complete import has_checkpoint
from tasks.experiments.apart import BUSY, call_apart
from tasks.experiments.plan import Cell, check_unchanged
from tasks.recipes import get_recipe

TAKEN = "is being trained by another process"


def is_finished(cell: Cell) -> bool:
    """Whether the run of a cell has left its scores."""
    return (cell.folder / METRICS_FILE).is_file()


def check_cells(cells: list[Cell]) -> None:
    """Raise InputError for a cell that was trained, or begun, with other keys than it has now."""
    for cell in cells:
        path = _keys_file(cell)
        if cell.folder.is_dir() and path.is_file():
            before = read_json_object(path, "remove it together with the folder beside it, and train that run anew")
            before = _compared(cell, before.get("recipe"), before.get("config") or {})
            check_unchanged(cell.name, cell.folder, before, _compared(cell, cell.recipe, cell.config))


def check_configs(cells: list[Cell]) -> None:
    """Resolve the configuration of each cell, so that a wrong key of the last one is found before the first is trained.

    Raises:
        InputError: there is no such recipe, or it refuses a configuration.
    """
    for cell in cells:
        recipe = get_recipe(cell.recipe)
        try:
            recipe.resolve(dict(cell.config))
        except InputError as error:
            raise InputError(f"{cell.name}: {error}") from None


def _keys_file(cell):
    return cell.folder.with_name(f"{cell.folder.name}.json")


def _compared(cell, recipe, config):
    """The keys of a run without those that say where it is."""
    places = ("device", "output_dir", *(["pretrained"] if cell.starts_from is not None else ()))
    return {"recipe": recipe, **{key: value for key, value in config.items() if key not in places}}


def run_planned(cell: Cell, apart: bool) -> str:
    """Train a cell of a plan and keep its scores and its model alone: checkpoints are larger than all else.

    Args:
        cell: of a plan in a file.
        apart: in a process of its own, so that a run that takes too much memory ends itself alone.

    Returns:
        Why the cell is not finished, in words; "" if it is.

    Raises:
        InputError: the recipe refuses the configuration.
    """
    if cell.starts_from is not None and not (cell.starts_from / METRICS_FILE).is_file():
        return f"starts from {cell.starts_from}, which is not finished"
    cell.folder.parent.mkdir(parents=True, exist_ok=True)
    with _claimed(cell) as is_free:
        if not is_free:
            return TAKEN
        if not is_finished(cell):
            write_json(_keys_file(cell), {"recipe": cell.recipe, "config": cell.config})
    if apart:
        given = {"recipe": cell.recipe, "config": cell.config, "labels": cell.labels}
        status = call_apart("train", given).returncode
        if status == EXIT_BAD_INPUT:
            raise InputError(f"{cell.name}: the recipe cannot run it, as said above; correct the plan or the files")
    else:
        status = 0 if run_cell(cell) else BUSY
    if status:
        return TAKEN if status == BUSY else f"failed with status {status}"
    shutil.rmtree(cell.folder / CHECKPOINTS_FOLDER, ignore_errors=True)
    return ""


def run_cell(cell: Cell, way: str | None = None) -> bool:
    """Train a cell in this process unless it is finished.

    Args:
        cell: the run.
        way: what :func:`way_of` said before processes that train together began; None asks it now.

    Returns:
        False if another process has the run.

    Raises:
        InputError: the configuration or a data file is wrong; a folder in which nothing was written is not left.
    """
    with _claimed(cell) as is_mine:
        if not is_mine:
            return False
        way = way or way_of(cell)
        recipe = get_recipe(cell.recipe)
        if way == "resume":
            recipe.resume(str(cell.folder))
        elif way == "train":
            if is_first_process() and cell.folder.is_dir():  # ended before its first checkpoint
                shutil.rmtree(cell.folder)
            recipe.train(cell.config)
    return True


def way_of(cell: Cell) -> str:
    """What is to be done with a cell: ``"none"`` if it is finished, ``"resume"`` from a checkpoint, or ``"train"``."""
    if is_finished(cell):
        return "none"
    return "resume" if has_checkpoint(cell.folder / CHECKPOINTS_FOLDER) else "train"


@contextlib.contextmanager
def _claimed(cell: Cell) -> Iterator[bool]:
    """Whether this process, or the processes that train together with it, have the cell until the end of the block."""
    if not is_first_process():
        yield True
        return
    file = cell.folder.with_name(f".{cell.folder.name}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    with locked(file) as is_mine:
        try:
            yield is_mine
        finally:
            if is_mine and (is_finished(cell) or not cell.folder.exists()):
                file.unlink(missing_ok=True)
