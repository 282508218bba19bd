"""Plans: which runs they name, and what is refused."""

import pytest

from paddle_rope.roformer import RoFormerConfig
from paddle_rope.tasks.experiments.length import read_length_plan
from paddle_rope.tasks.experiments.plan import read_plan
from paddle_rope.tasks.recipes import get_recipe
from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "configs" / "experiments"
PLANS = [path for path in sorted(FOLDER.glob("*.yaml")) if "\nrecipe:" in path.read_text(encoding="utf-8")]


@pytest.fixture
def write_plan(write, tmp_path):
    """Write a plan; what is given replaces or adds keys."""
    base = write({"hidden_size": 64, "num_hidden_layers": 2, "test_file": "t"}, "base.yaml")
    known = write({"softmax": {"attention": "softmax"}, "linear": {"attention": "linear"}}, "known.yaml")
    plan = {
        **{"output_dir": str(tmp_path / "out"), "recipe": "some", "config": str(base), "variants_file": str(known)},
        **{"settings": {"num_train_epochs": 3, "test_file": None}, "scores": {"dev.f1": "F1"}},
        "variants": ["softmax", "linear"],
    }
    return lambda **given: write({**plan, **given}, "plan.yaml")


def test_a_cell_has_the_keys_of_the_configuration_then_settings_then_case_then_variant(write_plan, tmp_path):
    plan = read_plan(
        write_plan(
            cases={512: {"max_characters": 512}, 1024: {"max_characters": 1024, "num_train_epochs": 2}},
            variants={"softmax": {"attention": "softmax"}, "thin": {"attention": "linear", "hidden_size": 32}},
            seeds=[1, 2],
        )
    )
    assert [cell.labels for cell in plan.cells] == [
        {"case": case, "variant": variant, "seed": seed}
        for seed in (1, 2)
        for case in ("512", "1024")
        for variant in ("softmax", "thin")
    ]
    folder = tmp_path / "out" / "runs" / "1024" / "thin" / "seed_2"
    assert plan.cells[-1].config == {
        "hidden_size": 32, "num_hidden_layers": 2, "test_file": None, "num_train_epochs": 2, "max_characters": 1024,
        "attention": "linear", "seed": 2, "output_dir": str(folder),
    }  # fmt: skip
    assert plan.cells[-1].folder == folder
    # without variants: all of the file
    plan = read_plan(write_plan(variants=None, config=None), settings={"num_train_epochs": "9"})
    assert plan.variants == ["softmax", "linear"]
    assert plan.cells[0].config.keys() == {"num_train_epochs", "test_file", "attention", "seed", "output_dir"}
    assert all(cell.config["num_train_epochs"] == "9" for cell in plan.cells)


def test_a_warm_start_takes_the_weights_of_the_same_case_and_seed_and_gives_no_sizes(write_plan, tmp_path):
    variants = {"softmax": {"attention": "softmax"}, "warm": {"attention": "linear", "start_from": "softmax"}}
    plan = read_plan(write_plan(variants=variants, cases={"a": {}, "b": {}}, seeds=[7]))
    cell = plan.cells[-1]
    start = tmp_path / "out" / "runs" / "b" / "softmax" / "seed_7"
    assert cell.starts_from == start and cell.config["pretrained"] == str(start / "model")
    assert cell.config.keys() == {"test_file", "num_train_epochs", "attention", "pretrained", "seed", "output_dir"}
    assert plan.cells[0].starts_from is None


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_plan_of_the_project_has_runs_that_its_recipe_takes(path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("paddle_rope.native.products.why_no_bfloat16", lambda: None)  # whatever this processor has
    plan = read_plan(path)
    for cell in plan.cells[: len(plan.cases) * len(plan.variants)]:
        settings = get_recipe(cell.recipe).resolve({**cell.config, "device": "cpu"})
        assert settings.config["seed"] == cell.config["seed"]
        if cell.starts_from is None:
            options = settings.keys.model_options()
            model = RoFormerConfig(**{name: options[name] for name in RoFormerConfig.names() if name in options})
            assert model.attention == "softmax" or {"linear", "window"} & set(model.layer_attention)


@pytest.mark.parametrize("name", ["speed", "ner_length"])
def test_the_length_plans_of_the_project_are_valid(name):
    assert read_length_plan(FOLDER / f"{name}.yaml")["lengths"]
