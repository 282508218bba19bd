"""Runs of a plan: finished ones are not run again, interrupted ones continue, and the tables hold what is finished."""

import functools
import json

import pytest
import yaml

from paddle_rope.tasks.commands.experiment import experiment
from paddle_rope.tasks.common.errors import InputError, Interrupted, exit_status
from paddle_rope.tasks.common.files import locked
from paddle_rope.tasks.experiments.engine import train_cell
from paddle_rope.tasks.experiments.plan import Cell
from tests.helpers.runs import pretended_recipe

SCORES = {"softmax": 0.80, "linear": 0.79, "poor": 0.70}
run = functools.partial(exit_status, experiment)


@pytest.fixture
def recipe(monkeypatch):
    """In place of every recipe: it only pretends to train, and its scores depend on the variant."""
    made = pretended_recipe()
    made.scores_of = lambda config: {"dev": {"f1": SCORES.get(config.get("layers"), 0) + 0.001 * config.get("seed", 0)}}
    monkeypatch.setattr("paddle_rope.tasks.experiments.engine.get_recipe", lambda name: made)
    return made


@pytest.fixture
def plan_file(write, tmp_path):
    plan = {
        "output_dir": str(tmp_path / "out"),
        "recipe": "ner",
        "scores": {"dev.f1": "F1"},
        "reference": "softmax",
        "seeds": [0, 2],
        "variants": {name: {"layers": name} for name in SCORES},
    }
    return write(plan, "plan.yaml")


def change(plan_file, **keys):
    plan = {**yaml.safe_load(plan_file.read_text(encoding="utf-8")), **keys}
    plan_file.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")


def cell(folder, **more):
    return Cell("ner", {"output_dir": str(folder)}, {"case": "", "variant": "linear", "seed": 0}, **more)


def test_run_that_another_process_has_or_that_has_no_start_yet_is_left(recipe, tmp_path):
    waits = cell(tmp_path / "runs/warm", starts_from=tmp_path / "softmax")
    assert "softmax, which is not finished" in train_cell(waits)
    wanted = cell(tmp_path / "runs/seed_0")
    wanted.folder.mkdir(parents=True)
    with locked(wanted.folder):
        assert "another process works on this run" in train_cell(wanted) and recipe.calls == []
    assert train_cell(wanted) == "" and len(recipe.calls) == 1
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed_0"]


def test_tables_hold_every_finished_run_and_no_run_is_done_twice(recipe, plan_file, tmp_path, capsys):
    out = tmp_path / "out"
    assert run([str(plan_file), "--only", "softmax", "linear", "--device", "cpu"]) == 0
    assert recipe.trained() == ["softmax/seed_0", "linear/seed_0", "softmax/seed_2", "linear/seed_2"]
    assert run([str(plan_file)]) == 0
    assert recipe.trained()[4:] == ["poor/seed_0", "poor/seed_2"]
    summary = (out / "summary.md").read_text(encoding="utf-8")
    for row in ("0.8010 ± 0.0014 | +0.0", "0.7910 ± 0.0014 | -1.0", "0.7010 ± 0.0014 | -10.0"):
        assert f"| {row} |" in summary
    assert summary in capsys.readouterr().out
    entries = json.loads((out / "summary.json").read_text(encoding="utf-8"))["variants"]
    assert [entry["scores"]["dev.f1"]["values"] for entry in entries] == [[0.8, 0.802], [0.79, 0.792], [0.7, 0.702]]
    assert (out / "runs.csv").read_text(encoding="utf-8").splitlines()[1] == ",softmax,0,0.8,60.0,10"
    assert not (out / "runs/linear/seed_0/checkpoints").exists()
    (out / "summary.md").unlink()
    assert run([str(plan_file), "--table"]) == 0
    assert (out / "summary.md").read_text(encoding="utf-8") == summary and len(recipe.calls) == 6
    change(plan_file, scores={"test.f1": "F1"})
    assert run([str(plan_file), "--table"]) == 2
    assert "metrics.json: has no test.f1" in capsys.readouterr().err


def test_seeds_and_keys_of_the_command_line_replace_those_of_the_plan(recipe, plan_file):
    words = [str(plan_file), "--only", "linear", "--seeds", "5,6", "--learning_rate", "1e-4", "--recompute"]
    assert run(words) == 0
    assert recipe.trained() == ["linear/seed_5", "linear/seed_6"]
    assert all((config["learning_rate"], config["recompute"]) == ("1e-4", "true") for _, config in recipe.calls)


def test_run_that_fails_does_not_stop_the_others_and_one_that_is_interrupted_does(recipe, plan_file, capsys):
    scores_of, errors = recipe.scores_of, {"linear": InputError("training has diverged")}

    def fail(config):
        if config["layers"] in errors:
            raise errors[config["layers"]]
        return scores_of(config)

    recipe.scores_of = fail
    assert run([str(plan_file)]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("linear / seed") == captured.err.count("training has diverged") == 2
    assert "| poor | 2 |" in captured.out and "| linear |" not in captured.out
    errors["linear"] = Interrupted(15)
    assert run([str(plan_file)]) == 128 + 15
    assert "linear/seed_0: ended by a signal; the same command continues it" in capsys.readouterr().err


def test_results_of_other_keys_are_not_taken_for_those_of_a_changed_plan(recipe, plan_file, tmp_path, capsys):
    words = [str(plan_file), "--only", "linear"]
    assert run([*words, "--device", "cpu"]) == 0
    before = (tmp_path / "out/summary.md").read_bytes()
    change(plan_file, settings={"learning_rate": 0.1})
    for more in ([], ["--table"], ["--only", "softmax"]):  # which would make tables of both
        assert run([*words, *more]) == 2
        error = capsys.readouterr().err
        assert "linear / seed 0 was run with learning_rate None" in error and "now has 0.1" in error
    assert (tmp_path / "out/summary.md").read_bytes() == before and len(recipe.calls) == 2
    assert run([*words, "--output_dir", str(tmp_path / "other")]) == 0
    (tmp_path / "other").rename(tmp_path / "moved")
    assert run([*words, "--output_dir", str(tmp_path / "moved")]) == 0
    assert len(recipe.calls) == 4


def test_keys_that_the_data_chose_are_not_compared_with_the_plan(recipe, plan_file, tmp_path, capsys):
    variants = {"linear": {"layers": "linear"}}
    change(plan_file, settings={"fit_to_data": True}, variants=variants, reference=None, seeds=[0])
    assert run([str(plan_file)]) == 0
    file = tmp_path / "out/runs/linear/seed_0/config.yaml"
    chosen = {**yaml.safe_load(file.read_text(encoding="utf-8")), "fit_to_data": False, "num_train_epochs": 9}
    file.write_text(yaml.safe_dump(chosen), encoding="utf-8")
    assert run([str(plan_file), "--table"]) == 0
    change(plan_file, settings={"fit_to_data": True, "num_train_epochs": 8})
    assert run([str(plan_file), "--table"]) == 2
    assert "num_train_epochs 9, and the plan now has 8" in capsys.readouterr().err
