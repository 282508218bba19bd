"""One configuration with several seeds and folds."""

import datetime
import json
import statistics
from unittest.mock import Mock

import pytest

from paddle_rope.tasks import recipes
from paddle_rope.tasks.common.errors import InputError, Interrupted
from paddle_rope.tasks.common.files import locked
from paddle_rope.tasks.common.training import loop, series
from paddle_rope.tasks.common.training.arguments import parse_seeds
from paddle_rope.tasks.common.training.series import resume_series, train_series
from tests.helpers.runs import pretended_recipe
from tests.tasks.ner.conftest import error_of

F1 = {7: 0.5, 1: 0.8, 3: 0.6}


@pytest.fixture
def recipe(monkeypatch):
    """The recipe of tests, whose scores depend on the seed and the fold."""
    return pretended_recipe(monkeypatch, lambda config: {
        "dev": {"f1": F1.get(config.get("seed", 3), 0.6), "recall": 0.25, "per_type": {}},
        "test": {"f1": F1.get(config.get("seed"), 0.0) + 0.1 * config.get("fold", 1)},
    })  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs"


def test_each_seed_is_trained_into_its_folder_and_the_scores_are_summed_up(recipe, folder, capsys):
    summary = train_series(recipe, {"a": 1, "seed": 42, "output_dir": str(folder)}, [7, 1, 3])
    expected = [{"a": 1, "seed": seed, "output_dir": str(folder / f"seed_{seed}")} for seed in (7, 1, 3)]
    assert [config for _, config in recipe.calls] == expected
    values = [0.5, 0.8, 0.6]
    assert summary["scores"]["dev.f1"] == {
        "values": values, "mean": statistics.fmean(values), "standard_deviation": statistics.stdev(values)
    }  # fmt: skip
    assert list(summary["scores"]) == ["dev.f1", "dev.recall", "test.f1"] and summary["runs"] == 3
    (kept,) = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["variants"]
    table = (folder / "summary.md").read_text(encoding="utf-8")
    assert kept == summary and "| dev f1 | 0.5000 | 0.8000 | 0.6000 | 0.6333 ± 0.1528 |" in table
    assert capsys.readouterr().out.endswith(table)
    header, row = (folder / "runs.csv").read_text(encoding="utf-8").splitlines()[:2]
    assert header == "seed,dev f1,dev recall,test f1,train_seconds,parameters" and row == "7,0.5,0.25,0.6,60.0,10"
    files = {"series.yaml", "runs.csv", "summary.json", "summary.md", "seed_7", "seed_1", "seed_3"}
    assert {path.name for path in folder.iterdir()} == files


@pytest.mark.parametrize("seeds, values, names", [
    ([7, 1], [0.65, 0.95], "seed 7 | seed 1"),  # the folds of a seed are averaged before the deviation
    ([7], [0.6, 0.7], "fold 1 | fold 2"),
    (None, [0.1, 0.2], "fold 1 | fold 2"),
])  # fmt: skip
def test_folds_are_averaged_or_are_the_deviation_of_one_seed(recipe, folder, seeds, values, names):
    summary = train_series(recipe, {"folds": "2", "output_dir": str(folder)}, seeds)
    of_seeds = [f"seed_{seed}/" for seed in seeds] if seeds else [""]
    assert recipe.trained() == [f"{seed}fold_{fold}" for seed in of_seeds for fold in (1, 2)]
    assert summary["scores"]["test.f1"]["values"] == pytest.approx(values) and summary["runs"] == len(recipe.calls)
    assert f"|  | {names} | mean ± deviation |" in (folder / "summary.md").read_text(encoding="utf-8")


def test_seeds_and_folds_among_the_keys_make_a_series(recipe, folder, tmp_path, monkeypatch):
    series = {"one": {"folds": ""}, "fold": {"folds": 3, "fold": 1}, "seeds": {"seeds": "1,3"}, "folds": {"folds": 2}}
    for name, keys in series.items():
        recipes.train_config({"recipe": "ner", "output_dir": str(folder / name), **keys})
    assert recipe.trained() == ["one", "fold", "seeds/seed_1", "seeds/seed_3", "folds/fold_1", "folds/fold_2"]
    recipes.resume(folder / "one")
    assert recipe.calls[-1] == ("resume", folder / "one")
    monkeypatch.chdir(tmp_path)
    as_yaml_reads_it = datetime.date(2026, 11, 28)
    recipes.train_config({"recipe": "ner", "output_dir": as_yaml_reads_it, "seeds": "7,1"})
    assert (tmp_path / "2026-11-28/seed_7").is_dir() and (tmp_path / "2026-11-28/summary.md").is_file()


def test_score_of_the_ensemble_stands_beside_the_mean_and_one_seed_has_no_deviation(recipe, folder, tmp_path):
    given = []
    of_ensemble = {"dev": {"f1": 0.75, "recall": 0.5}, "test": {"f1": 0.25}}
    recipe.score_ensemble = lambda config, run_dirs: given.append(run_dirs) or of_ensemble
    summary = train_series(recipe, {"output_dir": str(folder)}, [7, 1])
    assert given == [[str(folder / "seed_7"), str(folder / "seed_1")]]
    assert [score["ensemble"] for score in summary["scores"].values()] == [0.75, 0.5, 0.25]
    assert "| 0.6500 ± 0.2121 | 0.7500 |" in (folder / "summary.md").read_text(encoding="utf-8")
    one = train_series(recipe, {"output_dir": str(tmp_path / "one")}, [1])
    assert one["scores"]["dev.recall"] == {"values": [0.25], "mean": 0.25, "standard_deviation": None}
    train_series(recipe, {"output_dir": str(tmp_path / "folds"), "folds": 2})
    assert len(given) == 1  # one model, and models of other parts of the data, are no ensemble


def test_processes_other_than_the_first_write_nothing(recipe, folder, monkeypatch):
    monkeypatch.setattr(series, "is_first_process", lambda: False)
    monkeypatch.setattr(loop, "train", lambda recipe, config: recipe.calls.append(config["seed"]))
    assert train_series(recipe, {"output_dir": str(folder)}, [1, 2]) is None
    assert recipe.calls == [1, 2] and not folder.exists()


def test_interrupted_series_is_resumed_and_what_is_done_stays(recipe, folder, tmp_path):
    recipe.fails = lambda config: config["seed"] == 1
    assert "wrong data" in error_of(train_series, recipe, {"a": 1, "output_dir": str(folder)}, [7, 1, 3])
    (folder / "seed_1").mkdir()
    (folder / "seed_1/config.yaml").touch()
    (folder / "seed_3").mkdir()
    (folder / "seed_3/.config.yaml.9.tmp").touch()  # ended while it was begun: trained anew
    recipe.calls.clear()
    recipe.fails = lambda config: False
    moved = folder.rename(tmp_path / "moved runs")
    with locked(moved / "seed_1"):
        assert "seed_1: another process works on this run" in error_of(resume_series, moved, lambda name: recipe)
    assert recipe.calls == []
    assert resume_series(moved, lambda name: recipe)["scores"]["dev.f1"]["values"] == [0.5, 0.6, 0.6]
    seed_3 = {"a": 1, "seed": 3, "output_dir": str(moved / "seed_3")}
    assert not [*(moved / "seed_3").glob(".config*")]
    assert recipe.calls == [("resume", moved / "seed_1"), ("train", seed_3)]
    assert not [*moved.glob("*/checkpoints")]
    recipe.calls.clear()
    summary = json.loads((moved / "summary.json").read_text(encoding="utf-8"))["variants"]
    assert [resume_series(moved, lambda name: recipe)] == summary and recipe.calls == []  # it only writes the tables


def test_a_series_that_a_signal_ends_names_the_command_that_resumes(recipe, tmp_path):
    recipe.fails = Mock(side_effect=Interrupted(2))
    with pytest.raises(Interrupted, match="train --resume '.*my runs'$"):
        train_series(recipe, {"output_dir": str(tmp_path / "my runs")}, [1])


@pytest.mark.parametrize("output_dir, keys, said", [
    ("new/runs", {}, "wrong data"),
    ("new/runs", {"atention": 1}, "unknown key 'atention'"),
    ("", {}, "no 'output_dir'"),
    ("taken", {}, "is not empty"),
])  # fmt: skip
def test_a_mistake_makes_no_folder_and_changes_none(recipe, write, tmp_path, output_dir, keys, said):
    recipe.fails = lambda config: True
    write("{}", "taken/summary.json")
    before = sorted(tmp_path.rglob("*"))
    config = {"folds": 2, "output_dir": str(tmp_path / output_dir) if output_dir else "", **keys}
    assert said in error_of(train_series, recipe, config, [7, 1])
    assert sorted(tmp_path.rglob("*")) == before


def test_seeds_are_read_from_a_word_or_from_yaml_or_refused():
    for value, expected in (("42,43", [42, 43]), (" 7 , 1", [7, 1]), (5, [5]), ([3, 4], [3, 4])):
        assert parse_seeds(value) == expected
    assert parse_seeds("4294967295") == [2**32 - 1]
    for value in ("", "true", "1,,2", "1;2", "-1", "1.5", "²", [], [1, "x"], "1,01", "1,4294967296", "9" * 5000):
        with pytest.raises(InputError, match="^--seeds .*give different numbers from 0 to 4294967295"):
            parse_seeds(value)
