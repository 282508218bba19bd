"""Runs of a plan: in processes of their own, finished ones not again, interrupted ones from where they were."""

import json

import pytest
import yaml

from tasks.commands.experiment import experiment
from tasks.common.errors import EXIT_BAD_INPUT, InputError, exit_on_input_error
from tasks.common.training.series import claimed, train_unless_finished
from tasks.experiments import engine
from tasks.experiments.engine import train_cell
from tasks.experiments.plan import Cell, Plan
from tasks.experiments.table import draw

SCORES = {"softmax": 0.80, "linear": 0.79, "poor": 0.70}
run = exit_on_input_error(experiment)


@pytest.fixture
def of_variants(recipe):
    """The recipe of tests, whose scores depend on the variant."""
    recipe.scores_of = lambda config: {"dev": {"f1": SCORES[config["variant_of_test"]] + 0.001 * config["seed"]}}
    return recipe


def folders(recipe):
    return [config["output_dir"].split("runs/")[1] for _, config in recipe.calls]


@pytest.fixture
def plan_file(tmp_path):
    plan = {
        "output_dir": str(tmp_path / "out"),
        "recipe": "ner",
        "scores": {"dev.f1": "F1"},
        "reference": "softmax",
        "margin": 2,
        "seeds": [0, 2],
        "variants": {name: {"variant_of_test": name} for name in SCORES},
    }
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    return path


def change(plan_file, **keys):
    plan = {**yaml.safe_load(plan_file.read_text(encoding="utf-8")), **keys}
    plan_file.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Cells are trained here instead of in their own processes."""

    def train(name, config):
        try:
            return 0 if train_unless_finished(engine.get_recipe(name), config) else engine.BUSY
        except InputError:
            return EXIT_BAD_INPUT

    monkeypatch.setattr(engine, "train_apart", train)


def cell(folder, **config):
    return Cell("ner", {"output_dir": str(folder), **config}, {"case": "", "variant": "linear", "seed": 0})


def test_interrupted_run_resumes_if_it_has_a_whole_checkpoint_and_is_begun_anew_if_not(recipe, tmp_path):
    folder = tmp_path / "run"
    checkpoint = folder / "checkpoints" / "checkpoint-4"
    checkpoint.mkdir(parents=True)
    recipe.resume = lambda folder: recipe.calls.append(("resume", {"output_dir": folder}))
    (checkpoint / "complete").touch()
    config = {"output_dir": str(folder)}
    assert train_unless_finished(recipe, config)
    (checkpoint / "complete").unlink()
    assert train_unless_finished(recipe, config) and train_unless_finished(recipe, config)
    assert [call for call, _ in recipe.calls] == ["resume", "train"]
    assert not checkpoint.exists()


@pytest.mark.parametrize("status, said", [(0, ""), (-9, "failed with status -9"), (engine.BUSY, engine.TAKEN)])
def test_process_that_fails_is_told_apart_from_a_plan_that_is_wrong(recipe, tmp_path, monkeypatch, status, said):
    given = []
    monkeypatch.setattr(engine, "train_apart", lambda *run: given.append(run) or status)
    run = cell(tmp_path / "x", a=1)
    assert train_cell(run, True) == said
    assert given == [("ner", run.config)]
    monkeypatch.setattr(engine, "train_apart", lambda *_: EXIT_BAD_INPUT)
    with pytest.raises(InputError, match="linear / seed 0: the recipe cannot run it"):
        train_cell(run, True)


def test_warm_start_waits_for_the_run_that_it_starts_from(recipe, tmp_path):
    labels = {"case": "", "variant": "warm", "seed": 1}
    warm = Cell("ner", {"output_dir": str(tmp_path / "x")}, labels, starts_from=tmp_path / "softmax")
    assert "softmax, which is not finished" in train_cell(warm, True)
    assert recipe.calls == []


def test_run_that_another_process_has_is_left_to_it(recipe, tmp_path):
    wanted = cell(tmp_path / "runs" / "seed_0")
    with claimed(wanted.folder):
        assert train_cell(wanted, True) == "is being trained by another process"
        assert not train_unless_finished(recipe, wanted.config) and recipe.calls == []
    assert train_cell(wanted, True) == "" and len(recipe.calls) == 1
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed_0", "seed_0.json"]


@pytest.mark.parametrize("is_apart", [True, False])
def test_tables_hold_every_finished_run_and_no_run_is_done_twice(of_variants, plan_file, tmp_path, capsys, is_apart):
    out = tmp_path / "out"
    change(plan_file, apart=is_apart)
    assert run([str(plan_file), "--only", "softmax", "linear", "--device", "cpu"]) == 0
    assert folders(of_variants) == ["softmax/seed_0", "linear/seed_0", "softmax/seed_2", "linear/seed_2"]
    assert run([str(plan_file)]) == 0
    assert folders(of_variants)[4:] == ["poor/seed_0", "poor/seed_2"]
    assert (out / "runs.csv").read_text(encoding="utf-8").splitlines()[:3] == [
        "case,variant,seed,F1,train_seconds,parameters", ",softmax,0,0.8,60.0,10", ",softmax,2,0.802,60.0,10",
    ]  # fmt: skip
    summary = (out / "summary.md").read_text(encoding="utf-8")
    assert "| softmax | 2 | 0.8010 ± 0.0014 | +0.0 | yes | 1.0 |" in summary
    assert "| linear | 2 | 0.7910 ± 0.0014 | -1.0 | yes | 1.0 |" in summary
    assert "| poor | 2 | 0.7010 ± 0.0014 | -10.0 | no | 1.0 |" in summary
    assert summary in capsys.readouterr().out
    entries = json.loads((out / "summary.json").read_text(encoding="utf-8"))["variants"]
    assert [(entry["variant"], entry["scores"]["dev.f1"]["values"]) for entry in entries] == [
        ("softmax", [0.8, 0.802]), ("linear", [0.79, 0.792]), ("poor", [0.7, 0.702]),
    ]  # fmt: skip
    assert (out / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert not (out / "runs" / "linear" / "seed_0" / "checkpoints").exists()


def test_tables_are_written_again_without_training(of_variants, plan_file, tmp_path):
    assert run([str(plan_file), "--only", "linear"]) == 0
    before = (tmp_path / "out/summary.md").read_bytes()
    (tmp_path / "out/summary.md").unlink()
    assert run([str(plan_file), "--table"]) == 0
    assert (tmp_path / "out/summary.md").read_bytes() == before and len(of_variants.calls) == 2


def test_seeds_and_keys_of_the_command_line_stand_for_those_of_the_plan(of_variants, plan_file, tmp_path):
    words = [str(plan_file), "--only", "linear", "--seeds", "5,6", "--learning_rate", "1e-4", "--recompute"]
    assert run(words) == 0
    assert folders(of_variants) == ["linear/seed_5", "linear/seed_6"]
    assert all(config["learning_rate"] == "1e-4" and config["recompute"] == "true" for _, config in of_variants.calls)
    assert "seeds 5, 6" in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")


def test_run_that_fails_does_not_stop_the_others_and_is_told_at_the_end(of_variants, plan_file, monkeypatch, capsys):
    train = engine.train_apart

    def fail(recipe, config):
        return -9 if config["variant_of_test"] == "linear" else train(recipe, config)

    monkeypatch.setattr(engine, "train_apart", fail)
    assert run([str(plan_file)]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("linear / seed") == 2 and "failed with status -9" in captured.err
    assert "| poor | 2 |" in captured.out and "| linear |" not in captured.out


def test_results_of_other_keys_are_not_taken_for_those_of_a_changed_plan(of_variants, plan_file, tmp_path, capsys):
    words = [str(plan_file), "--only", "linear"]
    assert run([*words, "--device", "cpu"]) == 0
    before = (tmp_path / "out" / "summary.md").read_bytes()
    change(plan_file, settings={"learning_rate": 0.1})
    for more in ([], ["--table"], ["--only", "softmax"]):  # which would make tables of both
        assert run([*words, *more]) == 2
        said = capsys.readouterr().err
        assert "linear/seed_0: linear / seed 0 was run with learning_rate None" in said
        assert "the plan now has 0.1" in said
    assert (tmp_path / "out" / "summary.md").read_bytes() == before and len(of_variants.calls) == 2
    assert run([*words, "--output_dir", str(tmp_path / "other")]) == 0
    (tmp_path / "other").rename(tmp_path / "moved")
    assert run([*words, "--output_dir", str(tmp_path / "moved")]) == 0
    assert len(of_variants.calls) == 4


def test_lines_are_drawn_over_cases_that_are_numbers(of_variants, plan_file, tmp_path):
    change(plan_file, cases={64: {}, 128: {}}, case_name="tokens", seeds=[0])
    assert run([str(plan_file), "--cases", "128"]) == 0
    assert run([str(plan_file)]) == 0
    assert len(of_variants.calls) == 6
    table = (tmp_path / "out" / "runs.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].startswith("tokens,variant") and table[1].startswith("64,softmax") and len(table) == 7
    assert (tmp_path / "out" / "scores.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "words, said",
    [
        (["--only", "other"], "--only other: the plan has softmax, linear, poor"),
        (["--cases", "9"], "--cases 9"),
        (["--seeds", "1,x"], "--seeds 1,x: give numbers"),
        (["more"], "unexpected argument 'more'"),
    ],
)
def test_what_the_plan_does_not_have_is_refused(recipe, plan_file, words, said, capsys, tmp_path):
    assert run([str(plan_file), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_wrong_key_of_the_last_variant_is_found_before_the_first_is_trained(recipe, plan_file, tmp_path, capsys):
    variants = yaml.safe_load(plan_file.read_text(encoding="utf-8"))["variants"]
    variants["poor"]["atention"] = "linear"
    change(plan_file, variants=variants)
    assert run([str(plan_file)]) == 2
    assert "error: poor / seed 0: unknown key 'atention'" in capsys.readouterr().err
    assert not recipe.calls and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "key, said",
    [("recipe", "no recipe 'other'; the recipes are ner, "), ("report", "report 'other': there is none")],
)
def test_recipe_or_report_that_there_is_not_is_refused(plan_file, key, said, tmp_path, capsys):
    change(plan_file, **{key: "other"})
    assert run([str(plan_file)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_scores_that_the_runs_do_not_have_are_refused(of_variants, plan_file, capsys):
    change(plan_file, scores={"test.f1": "F1"})
    assert run([str(plan_file)]) == 2
    assert "metrics.json: has no test.f1; correct the scores of the plan" in capsys.readouterr().err


@pytest.mark.parametrize("values", [[1.0, 1.0], [0.98, 1.0], [0.1, 0.4]])
def test_the_axis_of_the_picture_ends_where_scores_do(values, tmp_path):
    runs = [Cell("ner", {"output_dir": str(tmp_path / name)}, {"case": "", "variant": name}) for name in "ab"]
    scores = [{"f1": {"mean": value, "standard_deviation": None}} for value in values]
    summary = [{"case": "", "variant": name, "scores": score} for name, score in zip("ab", scores)]
    low, high = draw(Plan(tmp_path, runs, {"f1": "F1"}), summary).axes[0].get_xlim()
    assert low < min(values) and max(values) <= high <= 1
