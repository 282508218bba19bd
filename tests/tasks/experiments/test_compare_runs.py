"""The table of several training runs."""

import json

import pytest
import yaml

from tasks.commands.main import main

RUNS = {
    "one": {"output_dir": "runs/one", "seed": 42, "attention": "softmax", "features": ["words", "bigrams"]},
    "two": {"output_dir": "runs/two", "seed": 42, "attention": "linear"},
}


@pytest.fixture
def folders(tmp_path):
    metrics = {"train_seconds": 90, "parameters": 1234, "dev": {"f1": 0.5, "support": 7, "per_type": {}}}
    for name, config in RUNS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        (tmp_path / name / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
        metrics = {"test": {"accuracy": 0.75}}
    return [tmp_path / name for name in RUNS]


def test_keys_that_differ_stand_beside_the_scores_of_all_recipes(folders, capsys):
    assert main(["compare", *map(str, folders)]) == 0
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert cells[0] == ["run", "attention", "features", "parameters", "minutes", "dev f1", "test accuracy"]
    assert cells[2:] == [
        [folders[0].as_posix(), "softmax", "words, bigrams", "1,234", "1.5", "0.5000", ""],
        [folders[1].as_posix(), "linear", "", "", "", "", "0.7500"],
    ]


@pytest.mark.parametrize("file, content", [("metrics.json", "{"), ("config.yaml", "- 1"), ("config.yaml", "a: [")])
def test_folder_that_is_no_finished_run_is_one_line(folders, refused, file, content):
    (folders[1] / file).write_text(content, encoding="utf-8")
    assert refused("compare", *folders).startswith(f"{folders[1] / file}:")
