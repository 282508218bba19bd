"""A plan: a list of training runs, from a YAML file (its keys: docs/experiments/README.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.common.cli.run_config import read_run_config
from tasks.common.errors import InputError
from tasks.common.runs.life import MODEL_FOLDER
from tasks.common.texts.text_files import shown
from tasks.common.training.arguments import SIZE_KEYS, parse_seeds

_TEXT, _MAPPING, _NUMBER = (str,), (dict,), (int, float)
KEYS = {  # of a plan -> types of their values
    **dict.fromkeys(("output_dir", "recipe", "config", "variants_file", "case_name", "reference", "report"), _TEXT),
    **dict.fromkeys(("settings", "cases"), _MAPPING),
    **dict.fromkeys(("variants", "scores"), (dict, list)),
    "without_rope": (bool, list),
    "seeds": (str, list, *_NUMBER),
    "margin": _NUMBER,
    "apart": (bool,),
}
REQUIRED = ("output_dir", "recipe", "scores")
TYPE_NAMES = {
    str: "a text", dict: "a mapping", list: "a list", bool: "true or false", int: "a number", float: "a number"
}  # fmt: skip
NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")
START_FROM = "start_from"  # of a variant: the variant whose trained weights it starts from
RECIPE, CONFIG = "recipe", "config"  # of a variant: instead of those of the plan
TWIN = "-no-rope"
# What a run cannot be given with ``pretrained``.
OF_NEW_MODELS = (*SIZE_KEYS, "vocab_min_count")


@dataclass(frozen=True)
class Cell:
    """One training run.

    Attributes:
        recipe: its name.
        config: its configuration keys, with ``output_dir``.
        labels: which of the plan's runs it is: ``case``, ``variant``, ``seed``.
        starts_from: folder of the cell that has to be finished before it, whose trained weights it starts from, or
            whose results its recipe reads.
    """

    recipe: str
    config: dict[str, Any]
    labels: dict[str, Any]
    starts_from: Path | None = None

    @property
    def folder(self) -> Path:
        return Path(self.config["output_dir"])

    @property
    def group(self) -> tuple[str, str]:
        """(case, variant): what runs with other seeds have in common."""
        return self.labels["case"], self.labels["variant"]

    @property
    def name(self) -> str:
        return " / ".join(filter(None, (*self.group, f"seed {self.labels['seed']}")))


@dataclass(frozen=True)
class Plan:
    """Training runs, and how they are shown.

    Attributes:
        output_dir: folder of all runs and tables.
        recipe: name of the recipe of all runs but those of variants that name another.
        cells: the runs, in the order in which they are trained: all variants with the first seed come first.
        scores: dotted place in ``metrics.json`` -> name in the tables; the first is the one that is drawn.
        case_name: what the cases are called.
        reference, margin: variant to compare with; how many points below it still count as near.
        report: name of a report of its own, beside the tables (:mod:`tasks.experiments.reports`).
        apart: whether each run has a process of its own.
    """

    output_dir: Path
    recipe: str
    cells: list[Cell]
    scores: dict[str, str]
    case_name: str = "case"
    reference: str | None = None
    margin: float | None = None
    report: str | None = None
    apart: bool = True

    @property
    def groups(self) -> dict[tuple[str, str], list[Cell]]:
        """The cells of each case and variant; cases outside, both in their order."""
        cases = dict.fromkeys(cell.group[0] for cell in self.cells)
        variants = dict.fromkeys(cell.group[1] for cell in self.cells)
        groups = {(case, variant): [] for case in cases for variant in variants}
        for cell in self.cells:
            groups[cell.group].append(cell)
        return groups

    @property
    def cases(self) -> list[str]:
        return list(dict.fromkeys(case for case, _ in self.groups))

    @property
    def variants(self) -> list[str]:
        return list(dict.fromkeys(variant for _, variant in self.groups))


def read_plan(path: str | Path, output_dir=None, seeds=None, settings: dict[str, Any] | None = None) -> Plan:
    """Read a plan and make its cells.

    Args:
        path: of the YAML file.
        output_dir: instead of the plan's.
        seeds: instead of the plan's, as :func:`parse_seeds` reads them.
        settings: keys of all runs, beside and instead of the plan's.

    Raises:
        InputError: the file or something in it is wrong.
    """
    plan = read_keys(path, KEYS, REQUIRED, output_dir)
    variants = read_variants(path, plan)
    cases = {str(name): _mapping(path, "cases", keys) for name, keys in (plan.get("cases") or {"": {}}).items()}
    if list(cases) != [""]:
        _check_names(path, "cases", cases)
        if plan.get("report"):
            raise InputError(f"{path}: the report {plan['report']!r} is of variants alone; leave cases or report out")
    scores = plan["scores"] if isinstance(plan["scores"], dict) else _named(path, "scores", plan["scores"])
    for place, title in scores.items():
        if not (isinstance(place, str) and isinstance(title, str)):
            raise InputError(f"{path}: scores: {shown(place)} and {shown(title)} have to be texts, such as dev.f1: F1")
    reference = plan.get("reference")
    if reference is not None and reference not in variants:
        raise InputError(f"{path}: the reference {reference!r} is not one of the variants")
    ways = {variant: _recipe_and_base(plan, keys) for variant, keys in variants.items()}
    output_dir = Path(plan["output_dir"])
    cells = [
        _cell(recipe, output_dir, case, variant, seed, {**base, **of_case, **of_variant, **(settings or {})})
        for seed in parse_seeds(plan.get("seeds", [42]) if seeds is None else seeds)
        for case, of_case in cases.items()
        for variant, of_variant in variants.items()
        for recipe, base in [ways[variant]]
    ]
    others = ("case_name", "reference", "margin", "report", "apart")
    return Plan(output_dir, plan["recipe"], cells, scores, **{key: plan[key] for key in others if key in plan})


def read_variants(path, plan):
    """dict from the name of each variant to its settings, in the order of the plan.

    A variant without settings in the plan has those of ``variants_file``; a plan without variants has all of the file.
    Each one in ``without_rope`` (true: all) is followed by a twin that does not know positions.
    """
    known = read_run_config(plan["variants_file"]) if plan.get("variants_file") else {}
    given = plan.get("variants") or known
    if not given:
        raise InputError(f"{path}: no 'variants' in the plan")
    given = given if isinstance(given, dict) else dict.fromkeys(_named(path, "variants", given))
    given = {str(name): settings for name, settings in given.items()}
    _check_names(path, "variants", given)
    without_rope = plan.get("without_rope") or []
    without_rope = list(given) if without_rope is True else _named(path, "without_rope", without_rope)
    for name in without_rope:
        if name not in given:
            raise InputError(f"{path}: without_rope has {name!r}, which is not one of the variants")
    variants = {}
    for name, settings in given.items():
        if settings is None and name not in known:
            where = plan.get("variants_file") or "there is no variants_file"
            raise InputError(f"{path}: variant {name!r} has no settings, and is not in {where}")
        settings = _mapping(path, f"variant {name}", known[name] if settings is None else settings)
        start = settings.get(START_FROM)
        if start is not None and not (isinstance(start, str) and start in variants):
            raise InputError(f"{path}: variant {name!r} starts from {start!r}, which is not a variant before it")
        for key in (RECIPE, CONFIG):
            if not isinstance(settings.get(key, ""), str):
                raise InputError(f"{path}: {key} of variant {name!r} is {settings[key]!r}; it has to be a text")
        variants[name] = dict(settings)  # of its own: YAML gives one mapping to all that name it
        if name in without_rope:
            variants[name + TWIN] = {**settings, "position_embedding": "none"}
    return variants


def read_keys(path, types, required, output_dir=None):
    """The keys of the YAML file of a plan; ``output_dir`` replaces that of the file.

    Args:
        path: of the file.
        types: dict from each key that there is to the types of its values.
        required: keys without which there is no plan.

    Raises:
        InputError: a key is unknown or missing, or a value is of another type.
    """
    plan = read_run_config(path)
    plan.update({} if output_dir is None else {"output_dir": str(output_dir)})
    for key, value in plan.items():
        if key not in types:
            raise InputError(f"{path}: unknown key {key!r}; the keys are {', '.join(types)}")
        if value is not None and type(value) not in types[key]:
            wanted = " or ".join(dict.fromkeys(TYPE_NAMES[kind] for kind in types[key]))
            raise InputError(f"{path}: {key} is {value!r}; it has to be {wanted}")
    for key in required:
        if not plan.get(key):
            raise InputError(f"{path}: no {key!r} in the plan")
    return plan


def check_unchanged(name, place, before, now):
    """Raise InputError if the keys of the results ``name`` at ``place``, ``before``, are not the plan's, ``now``."""
    for key in [*now, *before]:
        if before.get(key) != now.get(key):
            raise InputError(
                f"{place}: {name} was run with {key} {before.get(key)!r}, and the plan now has {now.get(key)!r}; "
                "change it back, remove what is there, or give another --output_dir"
            )


def _recipe_and_base(plan, keys):
    """The recipe of a variant, and the keys of its configuration with the plan's settings; what ``keys`` of the variant
    says of the two is taken out of it."""
    recipe, file = keys.pop(RECIPE, plan["recipe"]), keys.pop(CONFIG, plan.get("config"))
    base = read_run_config(file) if file else {}
    base.pop("recipe", None)
    return recipe, {**base, **(plan.get("settings") or {})}


def _cell(recipe, output_dir, case, variant, seed, config):
    def folder(variant):
        return output_dir / "runs" / case / variant / f"seed_{seed}"

    start, starts_from = config.pop(START_FROM, None), None
    if start is not None:
        starts_from = folder(start)
        config = {key: value for key, value in config.items() if key not in OF_NEW_MODELS}
        config["pretrained"] = str(starts_from / MODEL_FOLDER)
    config.update(seed=seed, output_dir=str(folder(variant)))
    return Cell(recipe, config, {"case": case, "variant": variant, "seed": seed}, starts_from)


def _mapping(path, key, value):
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{path}: {key} is {value!r}, not a mapping; write 'key: value' under it, a line each")
    return value


def _named(path, key, names):
    """The members of a list as keys and values of a dict; raises InputError unless they are texts."""
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{path}: {key}: {shown(name)} is not a text; give a list of names")
    return {name: name for name in names}


def _check_names(path, key, names):
    for name in names:
        if not NAME.fullmatch(name):
            raise InputError(f"{path}: {key}: {name!r} names a folder; take letters, digits and _ . + -")
