"""Configurations of runs and plans of experiments."""

from pathlib import Path

from tasks.common.errors import InputError
from tests.attack.cases import Target
from tests.attack.mutators import OF_BYTES, OF_LINES, mutate
from tests.attack.trees import change_yaml

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
NAME = "mutant.yaml"
RECIPES = ("ner", "matching", "classification")
PLANS = ("demo", "scm", "few_texts_cluener", "positions", "order")


def _mutate(case, rng):
    return {NAME: mutate(case[NAME], rng, (*OF_BYTES, *OF_LINES, *[change_yaml] * 30))}


def read_configuration(folder: Path) -> None:
    """A configuration file up to the arguments of the first recipe that takes it."""
    from tasks.common.cli.run_config import read_run_config
    from tasks.common.process import quiet_paddlenlp
    from tasks.recipes import get_recipe

    quiet_paddlenlp()
    config = read_run_config(folder / NAME)
    for name in RECIPES:
        try:
            get_recipe(name).resolve({"output_dir": "unused", **config})
            return
        except InputError as error:
            refused = error
    raise refused


def read_plan(folder: Path) -> None:
    """A plan up to the configuration of each of its runs."""
    from tasks.experiments.engine import check_kept_keys
    from tasks.experiments.plan import read_plan

    plan = read_plan(folder / NAME, output_dir=folder / "output")
    check_kept_keys(plan.cells[:3])


TARGETS = [
    Target(
        "configuration",
        lambda: [
            {NAME: (CONFIGS / path).read_bytes()}
            for path in ("ner/demo.yaml", "ner/cluener.yaml", "matching/demo.yaml", "classification/demo.yaml")
        ],
        _mutate,
        read_configuration,
        (InputError,),
    ),
    Target(
        "plan",
        lambda: [{NAME: (CONFIGS / "experiments" / f"{name}.yaml").read_bytes()} for name in PLANS],
        _mutate,
        read_plan,
        (InputError,),
    ),
]
