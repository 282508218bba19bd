"""The runs of a plan: finished ones stay, interrupted ones continue from their last checkpoint."""

from __future__ import annotations

import shutil

from tasks.common.errors import EXIT_BAD_INPUT, InputError
from tasks.common.files import read_json_object, write_json
from tasks.common.runs.life import CHECKPOINTS_FOLDER, METRICS_FILE
from tasks.common.training.series import TAKEN, claimed, is_finished, train_unless_finished
from tasks.experiments.apart import BUSY, call_apart
from tasks.experiments.plan import Cell, check_unchanged
from tasks.recipes import get_recipe


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
    with claimed(cell.folder) as is_free:
        if not is_free:
            return TAKEN
        if not is_finished(cell.folder):
            write_json(_keys_file(cell), {"recipe": cell.recipe, "config": cell.config})
    if apart:
        given = {"recipe": cell.recipe, "config": cell.config}
        status = call_apart("train", given).returncode
        if status == EXIT_BAD_INPUT:
            raise InputError(f"{cell.name}: the recipe cannot run it, as said above; correct the plan or the files")
    else:
        status = 0 if train_unless_finished(get_recipe(cell.recipe), cell.config) else BUSY
    if status:
        return TAKEN if status == BUSY else f"failed with status {status}"
    shutil.rmtree(cell.folder / CHECKPOINTS_FOLDER, ignore_errors=True)
    return ""
