"""Train the runs of a plan: finished ones are kept, interrupted ones continue from their last checkpoint."""

import itertools
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from paddle_rope.tasks.common.errors import InputError, Interrupted, as_input_error
from paddle_rope.tasks.common.files import check_makeable
from paddle_rope.tasks.common.training.run import CHECKPOINTS_FOLDER, CONFIG_FILE, read_config
from paddle_rope.tasks.common.training.series import is_finished, train_unless_finished
from paddle_rope.tasks.experiments.plan import Cell, check_unchanged, read_plan
from paddle_rope.tasks.experiments.table import write_tables
from paddle_rope.tasks.recipes import get_recipe

PLACES = ("output_dir", "device", "bf16")  # keys that may differ, as a plan may be continued elsewhere


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
    """Train a plan; returns the reason, in words, for each run that could not be finished, by its name.

    Unfinished runs are trained (with ``only`` or ``cases``, only these variants or cases), and the tables of all
    finished runs are written and printed. Several processes may work on one plan at the same time: each takes runs that
    no other has. Raises InputError if the plan is wrong, or if earlier results have other keys than it now has.
    """
    plan = read_plan(path, output_dir, seeds, settings)
    check_makeable(plan.output_dir, "--output_dir")
    for option, names, known in (("only", only, plan.variants), ("cases", cases, plan.cases)):
        for name in names:
            if name not in known:
                raise InputError(f"--{option} {name}: the plan has {', '.join(known)}")
    check_kept_keys(plan.cells)
    chosen = set(itertools.product(cases or plan.cases, only or plan.variants))
    cells = [cell for cell in plan.cells if cell.group in chosen and not tables_only]
    for cell in cells:
        if device is not None:
            cell.config["device"] = device
        resolved(cell, cell.config)  # a wrong key of the last run is found before the first is trained
    failed = {}
    for cell in tqdm(cells, unit="run", disable=not sys.stderr.isatty()):
        if not is_finished(cell.folder):
            print(f"---- {cell.name}", flush=True)
            try:
                reason = train_cell(cell)
            except Interrupted as error:
                message = f"{cell.folder}: ended by a signal; the same command continues it"
                raise Interrupted(error.number, message) from None
            if reason:
                failed[cell.name] = reason
            write_tables(plan)
    print(write_tables(plan), end="")
    return failed


def train_cell(cell: Cell) -> str:
    """Train or resume a run in this process, and remove its checkpoints, which are larger than all else. Returns "" if
    it is finished, otherwise the reason in words, such as training that diverges or another process that has it."""
    if cell.starts_from is not None and not is_finished(cell.starts_from):
        return f"starts from {cell.starts_from}, which is not finished"
    try:
        train_unless_finished(get_recipe(cell.recipe), cell.config)
    except InputError as error:
        if not is_finished(cell.folder):
            return str(error)
    shutil.rmtree(cell.folder / CHECKPOINTS_FOLDER, ignore_errors=True)
    return ""


def check_kept_keys(cells: Iterable[Cell]) -> None:
    """Raise InputError for a run that was trained, or begun, with other keys than it has now."""
    for cell in cells:
        if (cell.folder / CONFIG_FILE).is_file():
            places = PLACES if cell.starts_from is None else (*PLACES, "pretrained")
            kept = {**read_config(cell.folder), **{key: cell.config.get(key) for key in places}}
            before, now = resolved(cell, kept), resolved(cell, cell.config)
            if now.get("fit_to_data"):  # the folder has the keys that the data chose
                given = cell.config.keys() - {"fit_to_data"}
                before, now = ({key: config.get(key) for key in sorted(given)} for config in (before, now))
            check_unchanged(cell.name, cell.folder, before, now)


def resolved(cell: Cell, config: dict[str, Any]) -> dict[str, Any]:
    """A configuration of a run with all defaults; raises InputError if the recipe rejects it."""
    with as_input_error(f"{cell.name}: ", InputError):
        return get_recipe(cell.recipe).resolve(dict(config)).config
