"""Runs of a plan: in processes of their own, finished ones not again, interrupted ones from where they were."""

import json
from types import SimpleNamespace

import compare_attention
import pytest
import yaml

from tasks.common.errors import InputError
from tasks.experiments import running
from tasks.experiments.plan import Cell

SCORES = {"softmax": 0.80, "linear": 0.79, "poor": 0.70}


def leave_scores(config):
    """What a recipe leaves in its folder."""
    variant = config["variant_of_test"]
    folder = running.Path(config["output_dir"])
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    metrics = {"dev": {"f1": SCORES[variant] + 0.001 * config["seed"]}, "train_seconds": 60.0, "parameters": 10}
    (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")


@pytest.fixture
def calls(monkeypatch):
    """A recipe that writes down its calls."""
    calls = []

    def train(config):
        calls.append(("train", config["output_dir"]))
        leave_scores(config)

    def resume(folder):
        calls.append(("resume", folder))

    def resolve_config(config):
        unknown = [key for key in config if "atention" in key]
        if unknown:
            raise InputError(f"unknown key {unknown[0]!r}")

    recipe = SimpleNamespace(train=train, resume=resume, resolve=resolve_config)
    monkeypatch.setattr("tasks.experiments.running.get_recipe", {"recipe_of_test": recipe}.__getitem__)
    return calls


@pytest.fixture
def plan_file(tmp_path):
    (tmp_path / "base.yaml").write_text("{}", encoding="utf-8")
    plan = {
        "output_dir": str(tmp_path / "out"),
        "recipe": "recipe_of_test",
        "config": str(tmp_path / "base.yaml"),
        "scores": {"dev.f1": "F1"},
        "reference": "softmax",
        "margin": 2,
        "seeds": [0, 2],
        "variants": {name: {"variant_of_test": name} for name in SCORES},
    }
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture
def in_this_process(monkeypatch):
    """Cells are trained here instead of in a process of their own."""

    def run(words, **options):
        return SimpleNamespace(returncode=compare_attention.main(words[2:]))

    monkeypatch.setattr(running.subprocess, "run", run)


def order(tmp_path, folder):
    path = tmp_path / "cell.json"
    config = {"output_dir": str(folder), "variant_of_test": "linear", "seed": 0}
    path.write_text(json.dumps({"recipe": "recipe_of_test", "config": config}), encoding="utf-8")
    return path


def test_interrupted_run_goes_on_if_it_has_a_whole_checkpoint_and_is_begun_anew_if_not(calls, tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoints" / "checkpoint-4").mkdir(parents=True)
    (folder / "checkpoints" / "checkpoint-4" / "complete").touch()
    running.train_cell(order(tmp_path, folder))
    (folder / "checkpoints" / "checkpoint-4" / "complete").unlink()
    running.train_cell(order(tmp_path, folder))
    assert calls == [("resume", str(folder)), ("train", str(folder))]
    assert not (folder / "checkpoints" / "checkpoint-4").exists()


def test_process_that_fails_is_told_apart_from_a_plan_that_is_wrong(tmp_path):
    cell = Cell("", "linear", 0, {"output_dir": "x"}, tmp_path / "x")
    tool = tmp_path / "tool.py"
    for status, said in ((0, ""), (9, "failed with status 9")):
        tool.write_text(
            f"import json, sys\nassert json.load(open(sys.argv[2])) == {{'recipe': 'r', 'config': {cell.config!r}}}\n"
            f"sys.exit({status})\n",
            encoding="utf-8",
        )
        assert running.run_apart("r", cell, tool) == said
    tool.write_text("import sys\nsys.exit(2)\n", encoding="utf-8")
    with pytest.raises(InputError, match="linear / seed 0: the recipe cannot run it"):
        running.run_apart("r", cell, tool)


def test_warm_start_waits_for_the_run_that_it_starts_from(tmp_path):
    cell = Cell("", "warm", 0, {}, tmp_path / "x", starts_from=tmp_path / "softmax")
    assert "softmax, which is not finished" in running.run_apart("r", cell, tmp_path / "tool.py")


def test_cell_that_another_call_is_training_is_left_to_it(tmp_path):
    cell = Cell("", "linear", 0, {}, tmp_path / "runs" / "seed_0")
    tool = tmp_path / "tool.py"
    tool.write_text("", encoding="utf-8")
    with running._claimed(cell.folder):
        assert running.run_apart("r", cell, tool) == "is being trained by another call"
    assert running.run_apart("r", cell, tool) == ""


def test_tables_hold_every_finished_run_and_no_run_is_done_twice(calls, plan_file, in_this_process, tmp_path, capsys):
    out = tmp_path / "out"
    assert compare_attention.main(["runs", str(plan_file), "--only", "softmax", "linear", "--device", "cpu"]) == 0
    assert [call[1].split("runs/")[1] for call in calls] == [
        "softmax/seed_0", "softmax/seed_2", "linear/seed_0", "linear/seed_2",
    ]  # fmt: skip
    assert compare_attention.main(["runs", str(plan_file)]) == 0
    assert [call[1].split("runs/")[1] for call in calls[4:]] == ["poor/seed_0", "poor/seed_2"]
    assert (out / "runs.csv").read_text(encoding="utf-8").splitlines()[:3] == [
        "case,variant,seed,F1,train_seconds,parameters", ",softmax,0,0.8,60.0,10", ",softmax,2,0.802,60.0,10",
    ]  # fmt: skip
    summary = (out / "summary.md").read_text(encoding="utf-8")
    assert "| softmax | 2 | 0.8010 ± 0.0014 | +0.0 | yes | 1.0 |" in summary
    assert "| linear | 2 | 0.7910 ± 0.0014 | -1.0 | yes | 1.0 |" in summary
    assert "| poor | 2 | 0.7010 ± 0.0014 | -10.0 | no | 1.0 |" in summary
    assert summary in capsys.readouterr().out
    assert (out / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert not (out / "runs" / "linear" / "seed_0" / "checkpoints").exists()


def test_seeds_of_the_command_line_stand_for_those_of_the_plan(calls, plan_file, in_this_process, tmp_path):
    assert compare_attention.main(["runs", str(plan_file), "--only", "linear", "--seeds", "5,6"]) == 0
    assert [call[1].split("runs/")[1] for call in calls] == ["linear/seed_5", "linear/seed_6"]
    assert "seeds 5, 6" in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")


def test_run_that_fails_does_not_stop_the_others_and_is_told_at_the_end(calls, plan_file, monkeypatch, capsys):
    def run(words, **options):
        config = json.loads(running.Path(words[3]).read_text(encoding="utf-8"))["config"]
        if config["variant_of_test"] == "linear":
            return SimpleNamespace(returncode=-9)
        leave_scores(config)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(running.subprocess, "run", run)
    assert compare_attention.main(["runs", str(plan_file)]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("linear / seed") == 2 and "failed with status -9" in captured.err
    assert "| poor | 2 |" in captured.out and "| linear |" not in captured.out


def test_results_of_other_keys_are_not_taken_for_those_of_a_changed_plan(
    calls, plan_file, in_this_process, tmp_path, capsys
):
    words = ["runs", str(plan_file), "--only", "linear"]
    assert compare_attention.main([*words, "--device", "cpu"]) == 0
    before = (tmp_path / "out" / "summary.md").read_bytes()
    plan = yaml.safe_load(plan_file.read_text(encoding="utf-8"))
    plan["settings"] = {"learning_rate": 0.1}
    plan_file.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    for more in ([], ["--table"], ["--only", "softmax"]):  # which would make tables of both
        assert compare_attention.main([*words, *more]) == 2
        said = capsys.readouterr().err
        assert "linear/seed_0: linear / seed 0 was run with learning_rate None" in said
        assert "the plan now has 0.1" in said
    assert (tmp_path / "out" / "summary.md").read_bytes() == before and len(calls) == 2
    assert compare_attention.main([*words, "--output_dir", str(tmp_path / "other")]) == 0
    (tmp_path / "other").rename(tmp_path / "moved")
    assert compare_attention.main([*words, "--output_dir", str(tmp_path / "moved")]) == 0
    assert len(calls) == 4


def test_lines_are_drawn_over_cases_that_are_numbers(calls, plan_file, in_this_process, tmp_path):
    plan = yaml.safe_load(plan_file.read_text(encoding="utf-8"))
    plan.update(cases={64: {}, 128: {}}, case_name="tokens", seeds=[0])
    plan_file.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    assert compare_attention.main(["runs", str(plan_file), "--cases", "128"]) == 0
    assert compare_attention.main(["runs", str(plan_file)]) == 0
    assert len(calls) == 6
    table = (tmp_path / "out" / "runs.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].startswith("tokens,variant") and table[1].startswith("64,softmax") and len(table) == 7
    assert (tmp_path / "out" / "scores.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "words, said",
    [
        (["--only", "other"], "--only other: the plan has softmax, linear, poor"),
        (["--cases", "9"], "--cases 9"),
        (["--seeds", "1,x"], "--seeds 1,x: give numbers"),
    ],
)
def test_what_the_plan_does_not_have_is_refused(plan_file, words, said, capsys, tmp_path):
    assert compare_attention.main(["runs", str(plan_file), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_wrong_key_of_the_last_variant_is_found_before_the_first_is_trained(calls, plan_file, tmp_path, capsys):
    plan = yaml.safe_load(plan_file.read_text(encoding="utf-8"))
    plan["variants"]["poor"]["atention"] = "linear"
    plan_file.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    assert compare_attention.main(["runs", str(plan_file)]) == 2
    assert "error: poor / seed 0: unknown key 'atention'" in capsys.readouterr().err
    assert not calls and not (tmp_path / "out").exists()


@pytest.mark.parametrize("recipe", ["nope", "tasks.ner.recipe"])
def test_recipe_that_there_is_not_is_refused(plan_file, recipe, tmp_path, capsys):
    plan_file.write_text(plan_file.read_text(encoding="utf-8").replace("recipe_of_test", recipe), encoding="utf-8")
    assert compare_attention.main(["runs", str(plan_file)]) == 2
    assert f"no recipe '{recipe}'; the recipes are ner, " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_scores_that_the_runs_do_not_have_are_refused(calls, plan_file, in_this_process, capsys):
    text = plan_file.read_text(encoding="utf-8").replace("dev.f1", "test.f1")
    plan_file.write_text(text, encoding="utf-8")
    assert compare_attention.main(["runs", str(plan_file)]) == 2
    assert "metrics.json: has no test.f1; correct the scores of the plan" in capsys.readouterr().err
