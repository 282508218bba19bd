"""A plan: which training runs are compared. One YAML file; its keys are described in docs/attention.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.runs.life import MODEL_FOLDER
from tasks.common.tool.run_config import read_run_config
from tasks.common.training.arguments import SIZE_KEYS
from tasks.experiments.seeds import parse_seeds

KEYS = ("output_dir", "recipe", "config", "settings", "cases", "case_name", "variants_file", "variants",
        "without_rope", "scores", "reference", "margin", "seeds")  # fmt: skip
REQUIRED = ("output_dir", "recipe", "config", "variants", "scores")
TYPES = {
    **dict.fromkeys(("output_dir", "recipe", "config", "variants_file", "case_name", "reference"), (str,)),
    **dict.fromkeys(("settings", "cases"), (dict,)),
    **dict.fromkeys(("variants", "scores"), (dict, list)),
    "without_rope": (bool, list),
    "margin": (int, float),
}
TYPE_NAMES = {str: "a text", dict: "a mapping", list: "a list", bool: "true or false", int: "a number"}
NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")
START_FROM = "start_from"  # of a variant: the variant whose trained weights it starts from
TWIN = "-no-rope"
# What a run cannot be given with ``pretrained``.
OF_NEW_MODELS = (*SIZE_KEYS, "vocab_min_count")


@dataclass(frozen=True)
class Cell:
    """One training run: a variant in a case with a seed."""

    case: str
    variant: str
    seed: int
    config: dict
    folder: Path
    starts_from: Path | None = None  # folder of the cell whose weights it starts from

    @property
    def name(self):
        return " / ".join(filter(None, (self.case, self.variant, f"seed {self.seed}")))


@dataclass(frozen=True)
class Plan:
    """The runs of a plan and how they are shown."""

    name: str
    output_dir: Path
    recipe: str
    cases: list
    case_name: str
    variants: dict  # name -> settings
    scores: dict  # dotted place in metrics.json -> name in the tables; the first is the one that is drawn
    reference: str | None
    margin: float | None
    seeds: list
    cells: list = field(repr=False)


def read_plan(path, output_dir=None, seeds=None):
    """Read a plan and make its cells.

    Args:
        path: of the YAML file.
        output_dir: instead of the plan's.
        seeds: instead of the plan's, as :func:`~tasks.experiments.seeds.parse_seeds` reads them.

    Raises:
        InputError: the file or something in it is wrong.
    """
    plan = read_run_config(path)
    for key in plan:
        if key not in KEYS:
            raise InputError(f"{path}: unknown key {key!r}; the keys of a plan are {', '.join(KEYS)}")
    check_types(path, plan, TYPES)
    if output_dir is not None:
        plan["output_dir"] = str(output_dir)
    for key in REQUIRED:
        if not plan.get(key):
            raise InputError(f"{path}: no {key!r} in the plan")
    variants = read_variants(path, plan)
    cases = {str(name): _mapping(path, "cases", settings) for name, settings in (plan.get("cases") or {"": {}}).items()}
    if list(cases) != [""]:
        _check_names(path, "cases", cases)
    seeds = parse_seeds(plan.get("seeds", [42]) if seeds is None else seeds)
    scores = plan["scores"] if isinstance(plan["scores"], dict) else {place: place for place in plan["scores"]}
    reference = plan.get("reference")
    if reference is not None and reference not in variants:
        raise InputError(f"{path}: the reference {reference!r} is not one of the variants")
    base = {**read_run_config(plan["config"]), **_mapping(path, "settings", plan.get("settings"))}
    output_dir = Path(plan["output_dir"])
    cells = []
    for case, of_case in cases.items():
        for variant, of_variant in variants.items():
            for seed in seeds:
                cells.append(_cell(output_dir, case, variant, seed, {**base, **of_case, **of_variant}))
    return Plan(
        Path(path).stem, output_dir, plan["recipe"], list(cases), plan.get("case_name", "case"), variants, scores,
        reference, plan.get("margin"), seeds, cells,
    )  # fmt: skip


def read_variants(path, plan):
    """dict from the name of each variant to its settings, in the order of the plan.

    A variant without settings in the plan has those of ``variants_file``. Each one in ``without_rope`` (true: all) is
    followed by a twin that does not know positions.
    """
    known = read_run_config(plan["variants_file"]) if plan.get("variants_file") else {}
    given = plan["variants"]
    given = given if isinstance(given, dict) else dict.fromkeys(given)
    _check_names(path, "variants", given)
    without_rope = plan.get("without_rope") or []
    without_rope = list(given) if without_rope is True else without_rope
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
        if start is not None and start not in variants:
            raise InputError(f"{path}: variant {name!r} starts from {start!r}, which is not a variant before it")
        variants[name] = settings
        if name in without_rope:
            variants[name + TWIN] = {**settings, "position_embedding": "none"}
    return variants


def check_types(path, plan, types):
    """Raise InputError unless each value of a plan is of one of the ``types`` of its key, a dict of tuples, or None."""
    for key, value in plan.items():
        wanted = types.get(key)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is None or wanted is None or (is_number and int in wanted):
            continue
        if is_number or not isinstance(value, tuple(kind for kind in wanted if kind not in (int, float))):
            named = " or ".join(TYPE_NAMES[kind] for kind in wanted if kind in TYPE_NAMES)
            raise InputError(f"{path}: {key} is {value!r}; it has to be {named}")


def _cell(output_dir, case, variant, seed, config):
    def folder(variant):
        return output_dir / "runs" / case / variant / f"seed_{seed}"

    config = dict(config)
    start = config.pop(START_FROM, None)
    if start is not None:
        config = {key: value for key, value in config.items() if key not in OF_NEW_MODELS}
        config["pretrained"] = str(folder(start) / MODEL_FOLDER)
    config.update(seed=seed, output_dir=str(folder(variant)))
    return Cell(case, variant, seed, config, folder(variant), None if start is None else folder(start))


def _mapping(path, key, value):
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{path}: {key} is {value!r}, not a mapping; write 'key: value' under it, a line each")
    return value


def _check_names(path, key, names):
    for name in names:
        if not NAME.fullmatch(str(name)):
            raise InputError(f"{path}: {key}: {name!r} names a folder; take letters, digits and _ . + -")


def check_unchanged(name, place, before, now):
    """Refuse to take results of other keys for those of a plan.

    Args:
        name: of what was run.
        place: where its results are.
        before, now: its keys then, and in the plan.

    Raises:
        InputError: they differ.
    """
    for key in [*now, *before]:
        if before.get(key) != now.get(key):
            raise InputError(
                f"{place}: {name} was run with {key} {before.get(key)!r}, and the plan now has {now.get(key)!r}; "
                "change it back, remove what is there, or give another --output_dir"
            )
