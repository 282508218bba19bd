"""Configurations of runs, plans of experiments, and the folder of an interrupted run or series: what resuming reads
besides the weights."""

import contextlib
import functools
from pathlib import Path

from tasks.common.errors import InputError
from tests.attack.mutators import OF_BYTES, OF_LINES, mutate, mutator
from tests.attack.targets import CONFIGS, Target, json_bytes
from tests.attack.trees import change_json, change_yaml

NAME = "mutant.yaml"
RECIPES = ("ner", "matching", "classification")
STEP = 2
STATE = f"checkpoints/checkpoint-{STEP}/trainer_state.json"


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


@functools.cache
def _run() -> dict[str, bytes]:
    import yaml
    from paddlenlp.trainer import TrainerState

    ner, matching = (yaml.safe_load((CONFIGS / recipe / "demo.yaml").read_bytes()) for recipe in ("ner", "matching"))
    config = {**ner, "train_file": "train.jsonl", "dev_file": "dev.jsonl"}
    of_series = {**matching, "train_file": "train.tsv", "dev_file": None, "folds": 2}
    history = [{"loss": 1.0, "epoch": 1.0, "step": 1}, {"dev_f1": 0.5, "epoch": 1.0, "step": STEP}]
    state = TrainerState(epoch=1.0, global_step=STEP, max_steps=4, num_train_epochs=2, log_history=history)
    best = {"best_metric": 0.5, "best_model_checkpoint": f"run/checkpoints/checkpoint-{STEP}"}
    return {
        "config.yaml": yaml.safe_dump(config, allow_unicode=True).encode(),
        "inputs.json": json_bytes({}),
        "series.yaml": yaml.safe_dump({"recipe": "matching", "seeds": [1, 2], "config": of_series}).encode(),
        STATE: json_bytes({**vars(state), **best}),
    }


def _change_run(case, rng):
    name = rng.choice(sorted(case))
    of_structure = change_yaml if name.endswith(".yaml") else change_json
    return {**case, name: mutate(case[name], rng, (*OF_BYTES, *OF_LINES, *[of_structure] * 20))}


def read_run(folder: Path) -> None:
    """A run, and a series of it, up to where they would go on."""
    from tasks.common.cli.run_config import read_run_config
    from tasks.common.process import quiet_paddlenlp
    from tasks.common.run import Run
    from tasks.common.runs import run_folder
    from tasks.common.training.checkpoints import last_checkpoint, mark_complete
    from tasks.common.training.memory import MemoryData
    from tasks.common.training.series import members_of
    from tasks.recipes import get_recipe

    quiet_paddlenlp()
    mark_complete((folder / STATE).parent)  # as a forger does
    checkpoint = last_checkpoint(folder / run_folder.CHECKPOINTS_FOLDER)
    config = {**read_run_config(folder / run_folder.CONFIG_FILE), "output_dir": str(folder)}
    with contextlib.ExitStack() as stack:
        run_folder.claim(Run(*get_recipe("ner").resolve(config), stack, MemoryData({}, {}), checkpoint, is_begun=True))
    matching = get_recipe("matching")
    for member in members_of(folder, matching)[-1:]:  # they differ in seed and fold
        matching.resolve(member.config)


def _target(name, read, *files):
    change = mutator(*OF_BYTES, *OF_LINES, *[change_yaml] * 30)
    return Target(name, lambda: [{NAME: (CONFIGS / f).read_bytes()} for f in files], change, read, (InputError,))


TARGETS = [
    _target("configuration", read_configuration, "ner/cluener.yaml", *(f"{name}/demo.yaml" for name in RECIPES)),
    _target(
        "plan",
        read_plan,
        *(f"experiments/{name}.yaml" for name in ("demo", "scm", "few_texts_cluener", "positions", "order")),
    ),
    Target("run", lambda: [_run()], _change_run, read_run, (InputError,), lambda case: {**_run(), **case}),
]
