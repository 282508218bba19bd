"""A recipe that only pretends to train."""

import json
from pathlib import Path
from types import SimpleNamespace

import yaml

from tasks.common.errors import InputError


def pretended_recipe():
    """A recipe that trains nothing: ``calls`` lists its calls; ``scores_of`` gives what a run leaves."""

    def leave(config):
        folder = Path(config["output_dir"])
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        metrics = {"train_seconds": 60.0, "parameters": 10, **recipe.scores_of(config)}
        (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
        return metrics

    def train(config):
        recipe.calls.append(("train", config))
        if recipe.fails(config):
            raise InputError("wrong data")
        metrics = leave(config)
        (Path(config["output_dir"]) / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        return metrics

    def resume(folder):
        recipe.calls.append(("resume", folder))
        return leave({"output_dir": folder})

    def resolve(config):
        for key in config:
            if "atention" in key:
                raise InputError(f"unknown key {key!r}")
        return SimpleNamespace(config=config)

    recipe = SimpleNamespace(
        name="ner", train=train, resume=resume, resolve=resolve, calls=[], fails=lambda config: False,
        scores=("f1", "recall"), scores_of=lambda config: {"dev": {"f1": 0.9}},
        score_ensemble=lambda config, run_dirs: None,
    )  # fmt: skip
    return recipe
