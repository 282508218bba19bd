"""Many training runs at one call: the plan of a comparison."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tasks.common.errors import InputError, Interrupted
from tasks.common.files import check_makeable
from tasks.common.training.series import is_finished
from tasks.experiments import table
from tasks.experiments.cells import check_cells, check_configs, run_planned
from tasks.experiments.plan import read_plan
from tasks.experiments.reports import get_report


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
            if not is_finished(cell.folder):
                print(f"---- {cell.name}", flush=True)
                try:
                    failed[cell.name] = run_planned(cell, plan.apart)
                except Interrupted as error:
                    why = f"{cell.folder}: ended by a signal; the same command goes on with it"
                    raise Interrupted(error.number, why) from None
                table.write_tables(plan)
    print(table.write_tables(plan)[1], end="")
    return {name: reason for name, reason in failed.items() if reason}
