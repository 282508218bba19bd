"""One configuration with several seeds."""

import json
import math
from pathlib import Path

import pytest

from tasks.common.errors import InputError
from tasks.experiments.seeds import parse_seeds, resume_with_seeds, train_with_seeds

F1 = {7: 0.5, 1: 0.8, 3: 0.6}


@pytest.fixture
def train():
    """Pretends to train; ``train.given`` lists the configurations."""

    def train(config):
        train.given.append(config)
        if config["seed"] == train.fails_at:
            raise InputError("wrong")
        folder, f1 = Path(config["output_dir"]), F1[config["seed"]]
        folder.mkdir(parents=True)
        scores = {"seed": 1, "dev": {"f1": f1, "recall": f1 / 2, "per_type": {}}, "test": {"f1": 0.1, "recall": 0.2}}
        (folder / "metrics.json").write_text(json.dumps(scores), encoding="utf-8")
        return scores

    train.given, train.fails_at = [], None
    return train


def test_each_seed_is_trained_into_its_folder_and_the_scores_are_summed_up(train, tmp_path, capsys):
    config = {"a": 1, "seed": 42, "output_dir": str(tmp_path / "runs")}
    summary = train_with_seeds(train, config, [7, 1, 3], ("f1",))
    assert train.given == [
        {"a": 1, "seed": seed, "output_dir": str(tmp_path / "runs" / f"seed_{seed}")} for seed in (7, 1, 3)
    ]
    assert summary["seeds"] == [7, 1, 3]
    mean = (0.5 + 0.8 + 0.6) / 3
    deviation = math.sqrt(((0.5 - mean) ** 2 + (0.8 - mean) ** 2 + (0.6 - mean) ** 2) / 2)
    assert summary["dev"]["f1"]["values"] == [0.5, 0.8, 0.6]
    assert summary["dev"]["f1"]["mean"] == pytest.approx(mean)
    assert summary["dev"]["f1"]["standard_deviation"] == pytest.approx(deviation)
    assert summary["test"]["f1"]["standard_deviation"] == pytest.approx(0, abs=1e-12)
    assert summary.keys() == {"seeds", "dev", "test"} and summary["dev"].keys() == {"f1"}
    assert json.loads((tmp_path / "runs/seeds.json").read_text(encoding="utf-8")) == summary
    table = (tmp_path / "runs/seeds.md").read_text(encoding="utf-8")
    assert table.splitlines() == [
        "| | seed 7 | seed 1 | seed 3 | mean | standard deviation |",
        "|---|---|---|---|---|---|",
        "| dev f1 | 0.5000 | 0.8000 | 0.6000 | 0.6333 | 0.1528 |",
        "| test f1 | 0.1000 | 0.1000 | 0.1000 | 0.1000 | 0.0000 |",
    ]
    assert capsys.readouterr().out.endswith(table)


def test_scores_of_all_models_as_one_stand_beside_the_mean(train, tmp_path):
    given = []

    def score_together(config, run_dirs):
        given.append((config, run_dirs))
        return {"dev": {"f1": 0.75, "per_type": {}}, "test": {"f1": 0.25}}

    folder = tmp_path / "runs"
    config = {"output_dir": str(folder)}
    summary = train_with_seeds(train, config, [7, 1], ("f1",), score_together)
    assert given == [(config, [str(folder / "seed_7"), str(folder / "seed_1")])]
    assert (summary["dev"]["f1"]["together"], summary["test"]["f1"]["together"]) == (0.75, 0.25)
    assert (folder / "seeds.md").read_text(encoding="utf-8").splitlines() == [
        "| | seed 7 | seed 1 | mean | standard deviation | together |",
        "|---|---|---|---|---|---|",
        "| dev f1 | 0.5000 | 0.8000 | 0.6500 | 0.2121 | 0.7500 |",
        "| test f1 | 0.1000 | 0.1000 | 0.1000 | 0.0000 | 0.2500 |",
    ]


def test_one_model_is_not_scored_together(train, tmp_path):
    def score_together(config, run_dirs):
        raise AssertionError

    summary = train_with_seeds(train, {"output_dir": str(tmp_path / "runs")}, [1], ("f1",), score_together)
    assert "together" not in summary["dev"]["f1"]


def test_one_seed_has_no_deviation(train, tmp_path):
    summary = train_with_seeds(train, {"output_dir": str(tmp_path / "runs")}, [1], ("f1", "recall"))
    assert summary["dev"]["recall"] == {"values": [0.4], "mean": 0.4, "standard_deviation": None}
    table = (tmp_path / "runs/seeds.md").read_text(encoding="utf-8")
    assert "| dev recall | 0.4000 | 0.4000 |  |" in table.splitlines()


def test_processes_other_than_the_first_write_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.experiments.series.is_first_process", lambda: False)
    assert train_with_seeds(lambda config: None, {"output_dir": str(tmp_path / "runs")}, [1, 2], ("f1",)) is None
    assert list(tmp_path.iterdir()) == []


def never(*_):
    raise AssertionError


def test_interrupted_series_goes_on_and_what_is_done_stays(train, tmp_path, capsys):
    folder, config = tmp_path / "runs", {"a": 1, "output_dir": str(tmp_path / "runs")}
    train.fails_at = 1
    with pytest.raises(InputError, match="wrong"):
        train_with_seeds(train, config, [7, 1, 3], ("f1",))
    (folder / "seed_1/checkpoints/checkpoint-2").mkdir(parents=True)
    train.given, train.fails_at = [], None
    with pytest.raises(InputError, match="seed_1: ended before its first checkpoint; remove this folder"):
        resume_with_seeds(folder, train, never, ("f1",))
    (folder / "seed_1/checkpoints/checkpoint-2/complete").touch()
    summary = resume_with_seeds(folder, train, lambda _: {"dev": {"f1": 0.9}, "test": {"f1": 0.1}}, ("f1",))
    assert summary["dev"]["f1"]["values"] == [0.5, 0.9, 0.6]
    assert train.given == [{"a": 1, "seed": 3, "output_dir": str(folder / "seed_3")}]
    assert json.loads((folder / "seeds.json").read_text(encoding="utf-8")) == summary
    assert "---- seed 3 (3 of 3)" in capsys.readouterr().out
    with pytest.raises(InputError, match="all seeds are complete"):
        resume_with_seeds(folder, never, never, ("f1",))


def test_wrong_configuration_makes_no_folder(train, tmp_path):
    train.fails_at = 7
    with pytest.raises(InputError, match="wrong"):
        train_with_seeds(train, {"output_dir": str(tmp_path / "new/runs")}, [7, 1], ("f1",))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output_dir", [None, ""])
def test_output_dir_is_needed(train, output_dir):
    with pytest.raises(InputError, match="no 'output_dir'"):
        train_with_seeds(train, {"output_dir": output_dir}, [1], ("f1",))
    assert train.given == []


@pytest.mark.parametrize("taken", ["seed_3/model/config.json", "seeds.json"])
def test_folder_that_is_taken_is_an_error_before_anything_is_trained(train, tmp_path, taken):
    path = tmp_path / "runs" / taken
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(InputError, match="already holds another run"):
        train_with_seeds(train, {"output_dir": str(tmp_path / "runs")}, [7, 1, 3], ("f1",))
    assert train.given == []
    assert path.read_text() == "{}"


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
