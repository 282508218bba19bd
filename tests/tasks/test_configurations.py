"""The configurations of the project are understood, and say what they mean."""

from pathlib import Path

import pytest

from tasks.common.cli.run_config import read_run_config
from tasks.recipes import get_recipe, recipe_of_config

REPOSITORY = Path(__file__).resolve().parents[2]
RECIPES = ("matching", "classification", "pretraining", "language_model")
FILES = [path for recipe in RECIPES for path in sorted((REPOSITORY / "configs" / recipe).glob("*.yaml"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_configuration_of_the_project_is_right(path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    given = {"train_file": "train", "output_dir": "runs/mine", **read_run_config(path)}
    if path.parent.name in ("pretraining", "language_model"):
        del given["train_file"]
    resolved = get_recipe(recipe_of_config(given)).resolve({**given, "device": "cpu"}).config
    assert resolved["output_dir"].startswith("runs/")
    numbers = {key: value for key, value in given.items() if isinstance(value, (int, float))}
    assert {key: resolved[key] for key in numbers} == numbers
