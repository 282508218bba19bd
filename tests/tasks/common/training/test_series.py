"""One configuration with several seeds and folds."""

import json
import math

import pytest

from tasks import recipes
from tasks.common.errors import InputError
from tasks.common.training import series
from tasks.common.training.arguments import parse_seeds
from tasks.common.training.series import claimed, resume_series, train_series
from tasks.recipes import get_recipe
from tests.helpers.pretended import pretended_recipe

F1 = {7: 0.5, 1: 0.8, 3: 0.6}


@pytest.fixture
def recipe(monkeypatch):
    made = pretended_recipe()
    monkeypatch.setattr("tasks.recipes.get_recipe", lambda name: made)
    return made


@pytest.fixture
def of_seeds(recipe):
    """The recipe of tests, whose scores depend on the seed."""
    recipe.scores_of = lambda config: {
        "dev": {"f1": F1[config.get("seed", 3)], "recall": 0.25, "per_type": {}},
        "test": {"f1": 0.1},
    }
    return recipe


def trained(recipe):
    return [config["output_dir"].split("runs/")[1] for call, config in recipe.calls if call == "train"]


def table_of(folder):
    return (folder / "summary.md").read_text(encoding="utf-8").split("\n\n")[1].splitlines()


def test_each_seed_is_trained_into_its_folder_and_the_scores_are_summed_up(of_seeds, tmp_path, capsys):
    folder = tmp_path / "runs"
    config = {"a": 1, "seed": 42, "output_dir": str(folder)}
    summary = train_series(of_seeds, config, [7, 1, 3])
    assert [config for _, config in of_seeds.calls] == [
        {"a": 1, "seed": seed, "output_dir": str(folder / f"seed_{seed}")} for seed in (7, 1, 3)
    ]
    mean = (0.5 + 0.8 + 0.6) / 3
    deviation = math.sqrt(((0.5 - mean) ** 2 + (0.8 - mean) ** 2 + (0.6 - mean) ** 2) / 2)
    scores = summary["scores"]
    assert scores["dev.f1"]["values"] == [0.5, 0.8, 0.6]
    assert scores["dev.f1"]["mean"] == pytest.approx(mean)
    assert scores["dev.f1"]["standard_deviation"] == pytest.approx(deviation)
    assert list(scores) == ["dev.f1", "dev.recall", "test.f1"] and "ensemble" not in scores["dev.f1"]
    (kept,) = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["variants"]
    assert kept == summary and summary["runs"] == 3
    assert table_of(folder) == [
        "|  | seed 7 | seed 1 | seed 3 | mean ± deviation |",
        "| --- | --- | --- | --- | --- |",
        "| dev f1 | 0.5000 | 0.8000 | 0.6000 | 0.6333 ± 0.1528 |",
        "| dev recall | 0.2500 | 0.2500 | 0.2500 | 0.2500 ± 0.0000 |",
        "| test f1 | 0.1000 | 0.1000 | 0.1000 | 0.1000 ± 0.0000 |",
    ]
    assert capsys.readouterr().out.endswith((folder / "summary.md").read_text(encoding="utf-8"))
    assert (folder / "runs.csv").read_text(encoding="utf-8").splitlines()[:2] == [
        "seed,dev f1,dev recall,test f1,train_seconds,parameters", "7,0.5,0.25,0.1,60.0,10",
    ]  # fmt: skip
    files = {"series.yaml", "runs.csv", "summary.json", "summary.md", "seed_7", "seed_1", "seed_3"}
    assert {path.name for path in folder.iterdir()} == files


def test_folds_of_a_seed_are_averaged_before_the_deviation_of_the_seeds(recipe, tmp_path):
    recipe.scores_of = lambda config: {"test": {"f1": F1[config["seed"]] + 0.1 * config["fold"]}}
    folder = tmp_path / "runs"
    summary = train_series(recipe, {"folds": "2", "output_dir": str(folder)}, [7, 1])
    assert trained(recipe) == ["seed_7/fold_1", "seed_7/fold_2", "seed_1/fold_1", "seed_1/fold_2"]
    assert [config["fold"] for _, config in recipe.calls] == [1, 2, 1, 2]
    assert summary["scores"]["test.f1"]["values"] == pytest.approx([0.65, 0.95]) and summary["runs"] == 4
    assert table_of(folder)[0] == "|  | seed 7 | seed 1 | mean ± deviation |"


def test_of_one_seed_the_deviation_is_that_of_the_folds(recipe, tmp_path):
    recipe.scores_of = lambda config: {"test": {"f1": 0.1 * config["fold"]}}
    for name, seeds in (("folds", None), ("seed", [5])):
        summary = train_series(recipe, {"folds": 3, "output_dir": str(tmp_path / name)}, seeds)
        assert summary["scores"]["test.f1"]["values"] == pytest.approx([0.1, 0.2, 0.3])
        assert table_of(tmp_path / name)[0] == "|  | fold 1 | fold 2 | fold 3 | mean ± deviation |"
    assert (tmp_path / "folds/fold_3").is_dir() and (tmp_path / "seed/seed_5/fold_3").is_dir()


def test_seeds_and_folds_among_the_keys_make_a_series(of_seeds, tmp_path):
    recipes.train({"recipe": "ner", "output_dir": str(tmp_path / "runs/one")})
    recipes.train({"recipe": "ner", "output_dir": str(tmp_path / "runs/fold"), "folds": 3, "fold": 1})
    recipes.train({"recipe": "ner", "output_dir": str(tmp_path / "runs/seeds"), "seeds": "1,3"})
    recipes.train({"recipe": "ner", "output_dir": str(tmp_path / "runs/folds"), "folds": 2})
    assert trained(of_seeds) == ["one", "fold", "seeds/seed_1", "seeds/seed_3", "folds/fold_1", "folds/fold_2"]
    recipes.resume(tmp_path / "runs/one", "ner")
    assert of_seeds.calls[-1] == ("resume", tmp_path / "runs/one")


def test_score_of_the_ensemble_stands_beside_the_mean(of_seeds, tmp_path):
    given = []

    def score_ensemble(config, run_dirs):
        given.append(run_dirs)
        return {"dev": {"f1": 0.75, "recall": 0.5}, "test": {"f1": 0.25}}

    of_seeds.score_ensemble = score_ensemble
    folder = tmp_path / "runs"
    summary = train_series(of_seeds, {"output_dir": str(folder)}, [7, 1])
    assert given == [[str(folder / "seed_7"), str(folder / "seed_1")]]
    assert (summary["scores"]["dev.f1"]["ensemble"], summary["scores"]["test.f1"]["ensemble"]) == (0.75, 0.25)
    assert table_of(folder)[2] == "| dev f1 | 0.5000 | 0.8000 | 0.6500 ± 0.2121 | 0.7500 |"
    train_series(of_seeds, {"output_dir": str(tmp_path / "one")}, [1])
    train_series(of_seeds, {"output_dir": str(tmp_path / "folds"), "folds": 2})
    assert len(given) == 1  # one model, and models of other parts of the data, are no ensemble


def test_one_seed_has_no_deviation(of_seeds, tmp_path):
    summary = train_series(of_seeds, {"output_dir": str(tmp_path / "runs")}, [1])
    assert summary["scores"]["dev.recall"] == {"values": [0.25], "mean": 0.25, "standard_deviation": None}
    assert "| dev recall | 0.2500 | 0.2500 |" in table_of(tmp_path / "runs")


def test_processes_other_than_the_first_write_nothing(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(series, "is_first_process", lambda: False)
    recipe.train = lambda config: recipe.calls.append(config["seed"])
    assert train_series(recipe, {"output_dir": str(tmp_path / "runs")}, [1, 2]) is None
    assert recipe.calls == [1, 2] and list(tmp_path.iterdir()) == []


def test_interrupted_series_is_resumed_and_what_is_done_stays(of_seeds, tmp_path, capsys):
    folder, config = tmp_path / "runs", {"a": 1, "output_dir": str(tmp_path / "runs")}
    of_seeds.fails = lambda config: config["seed"] == 1
    with pytest.raises(InputError, match="wrong data"):
        train_series(of_seeds, config, [7, 1, 3])
    (folder / "seed_1/checkpoints/checkpoint-2").mkdir(parents=True)
    (folder / "seed_1/checkpoints/checkpoint-2/complete").touch()
    (folder / "seed_3/checkpoints").mkdir(parents=True)  # ended before its first checkpoint: trained anew
    of_seeds.calls.clear()
    of_seeds.fails = lambda config: False
    moved = folder.rename(tmp_path / "moved runs")
    summary = resume_series(of_seeds, moved)
    assert summary["scores"]["dev.f1"]["values"] == [0.5, 0.6, 0.6]
    assert of_seeds.calls == [
        ("resume", str(moved / "seed_1")),
        ("train", {"a": 1, "seed": 3, "output_dir": str(moved / "seed_3")}),
    ]
    assert "---- seed 3 (3 of 3)" in capsys.readouterr().out
    with pytest.raises(InputError, match="all runs are complete"):
        resume_series(of_seeds, moved)


@pytest.mark.parametrize(
    "kept, said",
    [
        ("seeds: [1, 1]", "a seed is given twice"),
        ("seeds: one", "give numbers separated by commas"),
        ("seeds: null\n  folds: 1000000000", "configuration: folds must be from 2 to 1000"),
    ],
)
def test_damaged_series_is_one_line(tmp_path, kept, said):
    seeds, _, more = kept.partition("\n")
    keys = f"recipe: matching\n{seeds}\nconfig:\n  train_file: x\n{more}\n"
    (tmp_path / series.SERIES_FILE).write_text(keys)
    with pytest.raises(InputError, match=f"{series.SERIES_FILE}: .*{said}"):
        resume_series(get_recipe("matching"), tmp_path)


@pytest.mark.parametrize("fault", ["key", "data"])
def test_wrong_configuration_makes_no_folder(of_seeds, tmp_path, fault):
    of_seeds.fails = lambda config: True
    config = {"folds": 2, "output_dir": str(tmp_path / "new/runs"), **({"atention": 1} if fault == "key" else {})}
    with pytest.raises(InputError, match="wrong data" if fault == "data" else "unknown key 'atention'"):
        train_series(of_seeds, config, [7, 1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output_dir", [None, ""])
def test_output_dir_is_needed(recipe, output_dir):
    with pytest.raises(InputError, match="no 'output_dir'"):
        train_series(recipe, {"output_dir": output_dir}, [1])
    assert recipe.calls == []


@pytest.mark.parametrize("taken", ["seed_3/model/config.json", "summary.json"])
def test_folder_that_is_taken_is_an_error_before_anything_is_trained(recipe, tmp_path, taken):
    path = tmp_path / "runs" / taken
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(InputError, match="is not empty"):
        train_series(recipe, {"output_dir": str(tmp_path / "runs")}, [7, 1, 3])
    assert recipe.calls == [] and path.read_text() == "{}"


def test_series_that_another_process_works_on_is_left_to_it(recipe, tmp_path, monkeypatch):
    recipe.fails = lambda config: config["seed"] == 2
    with pytest.raises(InputError):
        train_series(recipe, {"output_dir": str(tmp_path / "runs")}, [1, 2])
    with claimed(tmp_path / "runs/seed_2") as is_mine:
        assert is_mine
        with pytest.raises(InputError, match="seed_2: is being trained by another process; wait for its end"):
            resume_series(recipe, tmp_path / "runs")


@pytest.mark.parametrize(
    "value, seeds",
    [("42,43", [42, 43]), (" 7 , 1", [7, 1]), ("5", [5]), (5, [5]), ([3, 4], [3, 4]), ("4294967295", [2**32 - 1])],
)
def test_seeds_are_read_from_a_word_or_from_yaml(value, seeds):
    assert parse_seeds(value) == seeds


@pytest.mark.parametrize(
    "value, message",
    [
        ("", "give numbers separated by commas"),
        ("true", "give numbers"),  # --seeds with nothing after it
        ("1,,2", "give numbers"),
        ("1;2", "give numbers"),
        ("-1", "give numbers"),
        ("1.5", "give numbers"),
        ("²", "give numbers"),
        ([], "give numbers"),
        ([1, "x"], "give numbers"),
        ("1,2,1", "a seed is given twice"),
        ("1,01", "a seed is given twice"),
        ("1,4294967296", "a seed must be from 0 to 4294967295"),
    ],
)
def test_wrong_seeds_are_an_error_in_one_line(value, message):
    with pytest.raises(InputError) as caught:
        parse_seeds(value)
    assert message in str(caught.value) and str(caught.value).startswith("--seeds ") and "\n" not in str(caught.value)
