"""A plan: training runs that differ in case, variant and seed, from a YAML file (docs/results/experiments.md)."""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paddle_rope.tasks.common.errors import InputError, as_input_error
from paddle_rope.tasks.common.files import check_makeable
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.texts.text_files import shown
from paddle_rope.tasks.common.training.arguments import SIZE_KEYS, parse_seeds
from paddle_rope.tasks.common.training.run import CONFIG_FILE, read_config
from paddle_rope.tasks.common.training.series import Cell, Series, cells_of, train_cells, write_tables
from paddle_rope.tasks.common.training.settings import resolve
from paddle_rope.tasks.recipes import get_part, get_recipe

KEYS = {  # of a plan -> types of their values
    **dict.fromkeys(("output_dir", "recipe", "config", "variants_file", "case_name", "reference"), (str,)),
    **dict.fromkeys(("settings", "cases", "scores"), (dict,)),
    "variants": (dict, list),
    "seeds": (str, list, int, float),
}
MOST_RUNS = 10_000
REQUIRED = ("output_dir", "recipe", "scores")
OF_ALL_RUNS = ("seed", "output_dir")  # keys that the plan gives each run
OF_VARIANTS = ("recipe", "config", "start_from")  # keys of a variant that are not configuration keys
NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")
OF_NEW_MODELS = (*SIZE_KEYS, "vocab_min_count")  # keys that a run with ``pretrained`` cannot have
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
    for option, names, known in (("only", only, plan.values("variant")), ("cases", cases, plan.values("case"))):
        for name in names:
            if name not in known:
                raise InputError(f"--{option} {name}: the plan has {', '.join(known)}")
    check_kept_keys(plan.cells)
    chosen = set(itertools.product(cases or plan.values("case"), only or plan.values("variant")))
    cells = [cell for cell in plan.cells if cell.group in chosen and not tables_only]
    for cell in cells:
        if device is not None:
            cell.config["device"] = device
        resolved(cell, cell.config)  # a wrong key of the last run is found before the first is trained
    failed = train_cells(plan, cells, "the same command continues it", goes_on=True)
    _, table = write_tables(plan)
    print(table, end="")
    return failed


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
        return resolve(config, cell.recipe.arguments).config


def read_plan(
    path: str | Path,
    output_dir: str | Path | None = None,
    seeds: str | list[int] | None = None,
    settings: dict[str, Any] | None = None,
) -> Series:
    """Read a plan and make its cells, of which all variants with the first seed come first. ``output_dir``, ``seeds``
    and ``settings``, keys of all runs, take precedence over the plan. Raises InputError if the file or something in it
    is wrong."""
    plan = read_keys(path, KEYS, REQUIRED, output_dir)
    variants = read_variants(path, plan)
    cases = named_settings(path, "cases", plan.get("cases") or {})
    for place, title in plan["scores"].items():
        if not (isinstance(place, str) and isinstance(title, str)):
            raise InputError(f"{path}: scores: {shown(place)} and {shown(title)} have to be texts, such as dev.f1: F1")
    if plan.get("reference") not in (None, *variants):
        raise InputError(f"{path}: the reference {plan['reference']!r} is not one of the variants")
    for where, given in (("settings", plan.get("settings") or {}), *cases.items(), ("the command", settings or {})):
        _refuse_keys(path, where, given, (*OF_ALL_RUNS, *OF_VARIANTS))
    for name, given in variants.items():
        _refuse_keys(path, name, given, (*OF_ALL_RUNS, *(OF_NEW_MODELS if "start_from" in given else ())))
    numbers = parse_seeds(plan.get("seeds", [42]) if seeds is None else seeds)
    if (runs := len(numbers) * max(1, len(cases)) * len(variants)) > MOST_RUNS:
        raise InputError(f"{path}: {runs:,} runs, more than {MOST_RUNS:,}; give fewer seeds, cases or variants")
    settings, output_dir, cells = settings or {}, Path(plan["output_dir"]), []
    for seed, (case, of_case) in itertools.product(numbers, (cases or {"": {}}).items()):
        for variant, of_variant in variants.items():
            file = of_variant.get("config", plan.get("config"))
            of_plan = (read_run_config(file) if file else {}, plan.get("settings") or {}, of_case, of_variant, settings)
            config = {key: value for given in of_plan for key, value in given.items() if key not in OF_VARIANTS}
            folder, start = output_dir / "runs" / case, None
            if "start_from" in of_variant:
                start = folder / of_variant["start_from"]
                config = {key: value for key, value in config.items() if key not in OF_NEW_MODELS}
            config["output_dir"] = str(folder / variant)
            with as_input_error(f"{path}: ", InputError):
                recipe = get_recipe(of_variant.get("recipe", plan["recipe"]))
            cells += cells_of(recipe, config, [seed], starts_from=start, case=case, variant=variant)
    case_name, report = plan.get("case_name") or "case", get_part(plan["recipe"], "report")
    return Series(output_dir, cells, plan["scores"], case_name, plan.get("reference"), report)


def read_variants(path: str | Path, plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of each variant by its name, in the order of the plan.

    A list names variants of ``variants_file``; a plan without variants has all of the file.
    """
    file = plan.get("variants_file")
    known = read_run_config(file) if file else {}
    given = plan.get("variants") or known
    if not given:
        raise InputError(f"{path}: no 'variants' in the plan")
    if isinstance(given, list):
        for name in given:
            if not isinstance(name, str) or name not in known:
                where = f"is not in {file}" if file else "has no settings, and there is no variants_file"
                raise InputError(f"{path}: variants: {shown(name)} {where}")
        given = {name: known[name] for name in given}
    variants = named_settings(path, "variants", given)
    for number, (name, settings) in enumerate(variants.items()):
        for key in OF_VARIANTS:
            if not isinstance(settings.get(key, ""), str):
                raise InputError(f"{path}: {key} of variant {name!r} is {settings[key]!r}; it has to be a text")
        start = settings.get("start_from")
        if start is not None and start not in list(variants)[:number]:
            raise InputError(f"{path}: variant {name!r} starts from {start!r}, which is not a variant before it")
    return variants


def read_keys(
    path: str | Path, types: dict[str, tuple], required: Iterable[str], output_dir: str | Path | None = None
) -> dict[str, Any]:
    """The keys of the YAML file of a plan, whose values must have one of the ``types`` of their key. ``output_dir``
    replaces the file's. Raises InputError if a key is unknown or missing, or a value is of another type."""
    plan = read_run_config(path)
    plan.update({} if output_dir is None else {"output_dir": str(output_dir)})
    for key, value in plan.items():
        if key not in types:
            raise InputError(f"{path}: unknown key {key!r}; the keys are {', '.join(types)}")
        if value is not None and type(value) not in types[key]:
            wanted = " or ".join(kind.__name__ for kind in types[key])
            raise InputError(f"{path}: {key} is {value!r}; it has to be of type {wanted}")
    for key in required:
        if not plan.get(key):
            raise InputError(f"{path}: no {key!r} in the plan")
    return plan


def check_unchanged(name: str, place: str | Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise InputError if the results ``name`` at ``place`` have other keys, ``before``, than the plan, ``now``."""
    for key in [*now, *before]:
        if before.get(key) != now.get(key):
            changed = f"{name} was run with {key} {before.get(key)!r}, and the plan now has {now.get(key)!r}"
            remedy = "change it back, remove what is there, or give another --output_dir"
            raise InputError(f"{place}: {changed}; {remedy}")


def _refuse_keys(path, where, given, keys):
    for key in sorted(given.keys() & set(keys)):
        right = "seeds and output_dir belong to the plan; recipe, config, start_from to a variant; sizes to its start"
        raise InputError(f"{path}: {where}: {key!r} has no effect there; {right}")


def named_settings(path, key, given):
    """The checked mapping from names, which become folder names, to mappings, which may be empty."""
    for name, settings in given.items():
        if not NAME.fullmatch(str(name)):
            raise InputError(f"{path}: {key}: {name!r} names a folder; take letters, digits and _ . + -")
        if not isinstance(settings, (dict, type(None))):
            raise InputError(f"{path}: {name} of {key} is {settings!r}; write 'key: value', a line each")
    return {str(name): settings or {} for name, settings in given.items()}
