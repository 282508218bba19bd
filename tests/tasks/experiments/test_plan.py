"""Plans: which runs they name, and what is refused; how they are trained, resumed and shown; runs side by side."""

import functools
import itertools
import json

import pytest
import yaml

from paddle_rope.tasks.commands.experiment import experiment
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError, Interrupted, exit_status
from paddle_rope.tasks.common.files import locked
from paddle_rope.tasks.common.training.settings import resolve
from paddle_rope.tasks.experiments.length import read_length_plan
from paddle_rope.tasks.experiments.plan import read_plan
from tests.conftest import REPOSITORY
from tests.helpers.runs import pretended_recipe

FOLDER = REPOSITORY / "configs" / "experiments"
PLANS = [path for path in sorted(FOLDER.glob("*.yaml")) if "\nrecipe:" in path.read_text(encoding="utf-8")]


def test_a_cell_has_the_keys_of_configuration_settings_case_and_variant(write, tmp_path):
    base = write({"hidden_size": 64, "num_hidden_layers": 2, "test_file": "t"}, "base.yaml")
    known = write({"softmax": {"attention": "softmax"}, "linear": {"attention": "linear"}}, "known.yaml")
    shared = {
        **{"output_dir": str(tmp_path / "out"), "recipe": "ner", "variants_file": str(known)},
        **{"settings": {"num_train_epochs": 3, "test_file": None}, "scores": {"dev.f1": "F1"}},
    }
    cases = {512: {"max_characters": 512}, 1024: {"max_characters": 1024, "num_train_epochs": 2}}
    variants = {"softmax": {"attention": "softmax"}, "thin": {"attention": "linear", "hidden_size": 32}}
    given = {"config": str(base), "cases": cases, "variants": variants, "seeds": [1, 2]}
    plan = read_plan(write({**shared, **given}, "plan.yaml"))
    labels = itertools.product((1, 2), ("512", "1024"), ("softmax", "thin"))
    assert [cell.labels for cell in plan.cells] == [{"case": b, "variant": c, "seed": a} for a, b, c in labels]
    folder = tmp_path / "out" / "runs" / "1024" / "thin" / "seed_2"
    assert plan.cells[-1].config == {
        "hidden_size": 32, "num_hidden_layers": 2, "test_file": None, "num_train_epochs": 2, "max_characters": 1024,
        "attention": "linear", "seed": 2, "output_dir": str(folder),
    }  # fmt: skip
    assert plan.cells[-1].folder == folder and plan.cells[-1].starts_from is None
    # without variants: all of the file
    plan = read_plan(write(shared, "plan.yaml"), settings={"num_train_epochs": "9"})
    assert plan.values("variant") == ["softmax", "linear"]
    assert plan.cells[0].config.keys() == {"num_train_epochs", "test_file", "attention", "seed", "output_dir"}
    assert all(cell.config["num_train_epochs"] == "9" for cell in plan.cells)
    # a warm start takes the weights of the same case and seed, and no sizes of the configuration
    warm = {"softmax": {"attention": "softmax"}, "warm": {"attention": "linear", "start_from": "softmax"}}
    cell = read_plan(write({**shared, **given, "variants": warm}, "plan.yaml")).cells[-1]
    start = tmp_path / "out" / "runs" / "1024" / "softmax" / "seed_2"
    assert cell.starts_from == start and cell.config["pretrained"] == str(start / "model")
    assert not {"hidden_size", "num_hidden_layers"} & cell.config.keys() and cell.config["max_characters"] == 1024


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_plan_of_the_project_has_runs_that_its_recipe_takes(path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("paddle_rope.native.products.why_no_bfloat16", lambda: None)  # whatever this processor has
    plan = read_plan(path)
    for cell in plan.cells[: len(plan.values("case")) * len(plan.values("variant"))]:
        settings = resolve({**cell.config, "device": "cpu"}, cell.recipe.arguments)  # makes the encoder's, too
        assert settings.config["seed"] == cell.config["seed"]


@pytest.mark.parametrize("name", ["speed", "ner_length"])
def test_the_length_plans_of_the_project_are_valid(name):
    assert read_length_plan(FOLDER / f"{name}.yaml")["lengths"]


# ---- training
SCORES = {"softmax": 0.80, "linear": 0.79, "poor": 0.70}
run = functools.partial(exit_status, experiment)


@pytest.fixture
def recipe(monkeypatch):
    """In place of every recipe: it only pretends to train, and its scores depend on the variant."""
    f1_of = lambda config: SCORES.get(config.get("layers"), 0) + 0.001 * config.get("seed", 0)  # noqa: E731
    return pretended_recipe(monkeypatch, lambda config: {"dev": {"f1": f1_of(config)}})


@pytest.fixture
def plan_file(write, tmp_path):
    plan = {"recipe": "ner", "scores": {"dev.f1": "F1"}, "reference": "softmax", "seeds": [0, 2]}
    variants = {name: {"layers": name} for name in SCORES}
    return write({**plan, "output_dir": str(tmp_path / "out"), "variants": variants}, "plan.yaml")


def change(plan_file, **keys):
    plan = {**yaml.safe_load(plan_file.read_text(encoding="utf-8")), **keys}
    plan_file.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")


def test_run_that_another_process_has_or_that_has_no_start_yet_is_left(recipe, plan_file, tmp_path, capsys):
    softmax, linear = (tmp_path / f"out/runs/{variant}/seed_0" for variant in ("softmax", "linear"))
    change(plan_file, variants={"softmax": {}, "linear": {"start_from": "softmax"}}, seeds=[0])
    softmax.mkdir(parents=True)
    with locked(softmax):
        assert run([str(plan_file)]) == 1
        error = capsys.readouterr().err
        assert "another process works on this run" in error and "softmax/seed_0, which is not finished" in error
        assert recipe.calls == []
    assert run([str(plan_file)]) == 0
    assert [config.get("pretrained") for _, config in recipe.calls] == [None, str(softmax / "model")]
    assert {path.name for path in (softmax, *softmax.parent.iterdir(), *linear.iterdir())} == {
        "seed_0", "config.yaml", "metrics.json",
    }  # fmt: skip


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


# ---- several runs of any recipe
RUNS = {
    "one": {"output_dir": "runs/one", "seed": 42, "attention": "softmax", "features": ["words", "bigrams"]},
    "two": {"output_dir": "runs/two", "seed": 42, "attention": "linear"},
}


def test_keys_that_differ_stand_beside_the_scores_of_all_recipes(write, refused, tmp_path, capsys):
    metrics = {"train_seconds": 90, "parameters": 1234, "dev": {"f1": 0.5, "support": 7, "per_type": {}}}
    for name, config in RUNS.items():
        write(config, f"{name}/config.yaml")
        write(json.dumps(metrics), f"{name}/metrics.json")
        metrics = {"test": {"accuracy": 0.75}}
    folders = [tmp_path / name for name in RUNS]
    assert main(["compare", *map(str, folders)]) == 0
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert cells[0] == ["run", "attention", "features", "parameters", "minutes", "dev f1", "test accuracy"]
    assert cells[2:] == [
        [folders[0].as_posix(), "softmax", "words, bigrams", "1,234", "1.5", "0.5000", ""],
        [folders[1].as_posix(), "linear", "", "", "", "", "0.7500"],
    ]
    for file, content in (("metrics.json", "{"), ("config.yaml", "- 1"), ("config.yaml", "a: [")):
        whole = (folders[1] / file).read_bytes()
        write(content, f"two/{file}")
        assert refused("compare", *folders).startswith(f"{folders[1] / file}:")
        write(whole, f"two/{file}")
