"""The reports of positions and Performers, on generated text."""

import csv
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from tasks.commands.experiment import experiment
from tasks.common.errors import exit_on_input_error
from tasks.common.reports.tables import mean_and_deviation
from tasks.experiments.performer.report import first_step_below, smoothed
from tasks.experiments.positions.report import TITLES
from tasks.experiments.positions.tables import PUBLISHED, rank_correlation
from tests.language_model.conftest import TINY

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "experiments"
VARIANTS = ("qk", "none", "v", "learned", "theta")
run = exit_on_input_error(experiment)


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """The demo plans with the sizes of tests, and their folders, trained."""
    folder = tmp_path_factory.mktemp("experiments")
    undrawn = np.zeros([2, 2, 3], dtype=np.uint8)
    for name, only in (("positions", VARIANTS), ("performer", ())):
        plan = yaml.safe_load((FOLDER / f"{name}_demo.yaml").read_text(encoding="utf-8"))
        plan["settings"] = {**plan["settings"], **TINY, "max_steps": 2}
        if name == "positions":
            plan["variants_file"] = str(FOLDER / "positions_variants.yaml")
        plan.update(seeds=[1, 2], output_dir=str(folder / name))
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:  # pictures of all runs are drawn at the end, not after each run
            patch.setattr("tasks.common.reports.figures.pixels", lambda figure: undrawn)
            assert run([str(folder / f"{name}.yaml"), *(["--only", *only] if only else [])]) == 0
        assert run([str(folder / f"{name}.yaml"), "--table"]) == 0
    return folder


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def is_drawn(path):
    """A picture that is not of one color."""
    return np.asarray(Image.open(path).convert("L")).std() > 1


def test_positions_have_every_loss(plans):
    losses = read(plans / "positions/losses.csv")
    assert [(line["variant"], line["seed"]) for line in losses] == [
        (variant, seed) for variant in VARIANTS for seed in "12"
    ]
    assert [line["published"] for line in losses[::2]] == ["2.712", "2.795", "2.856", "", ""]
    lengths = read(plans / "positions/lengths.csv")
    measured = {(line["variant"], line["scaling"], line["length"]) for line in lengths}
    scalings = ("none", "NTK x2", "YaRN x2", "NTK x4", "YaRN x4")
    plain = {(name, "none", length) for name in ("qk", "none", "v", "theta") for length in ("8", "16", "32")}
    scaled = {("qk", scaling, length) for scaling in scalings for length in ("8", "16", "32")}
    assert measured == plain | scaled | {("learned", "none", "8")}
    summary = read(plans / "positions/runs.csv")
    assert [line["held-out loss"] for line in summary] == [line["held_out_loss"] for line in losses]


def test_loss_at_the_length_of_training_is_the_held_out_loss(plans):
    lengths = {
        (line["variant"], line["seed"]): line["held_out_loss"]
        for line in read(plans / "positions/lengths.csv")
        if line["length"] == "8" and line["scaling"] == "none"
    }
    for line in read(plans / "positions/losses.csv"):
        assert float(lengths[line["variant"], line["seed"]]) == pytest.approx(float(line["held_out_loss"]))


def test_report_of_positions_sets_ours_beside_the_published(plans):
    text = (plans / "positions/results.md").read_text(encoding="utf-8")
    assert "| NoPE | 2.795 | " in text and "| QK, YaRN x4 | " in text and "3 placements" in text
    assert "2 steps of 4 texts of 8 characters" in text
    for name in ("losses.png", "lengths.png", "theta.png"):
        assert is_drawn(plans / "positions" / name)
    thetas = read(plans / "positions/theta.csv")
    assert len(thetas) == 2 * 4 and all(line["theta_start"] != line["theta_end"] for line in thetas)


def test_variants_are_reported_without_the_one_that_they_are_compared_with(plans, tmp_path):
    words = ["--only", "alibi", "v", "--seeds", "1", "--output_dir", str(tmp_path / "run")]
    assert run([str(plans / "positions.yaml"), *words]) == 0
    losses = read(tmp_path / "run/losses.csv")
    assert [line["variant"] for line in losses] == ["v", "alibi"]
    text = (tmp_path / "run/results.md").read_text(encoding="utf-8")
    assert f"| ALiBi | {float(losses[1]['held_out_loss']):.4f} |  |" in text
    assert not (tmp_path / "run/theta.csv").exists()


def test_performers_have_curves_of_every_seed(plans):
    points = read(plans / "performer/curves.csv")
    assert {(line["variant"], line["seed"], line["text"]) for line in points} == {
        (row, seed, text) for row in ("rope", "none", "learned") for seed in "12" for text in ("training", "held_out")
    }
    text = (plans / "performer/results.md").read_text(encoding="utf-8")
    assert "| Performer with RoPE | " in text and "as many positive orthogonal random features" in text
    assert is_drawn(plans / "performer/curves.png")
    config = yaml.safe_load((plans / "performer/runs/rope/seed_1/config.yaml").read_text(encoding="utf-8"))
    assert (config["attention"], config["feature_map"], config["normalizer"]) == ("linear", "favor", "unrotated")


@pytest.mark.parametrize("name", ["positions", "performer"])
def test_report_is_written_again_without_training(plans, name, capsys):
    before = (plans / name / "results.md").read_bytes()
    (plans / name / "results.md").unlink()
    assert run([str(plans / f"{name}.yaml"), "--table"]) == 0
    assert (plans / name / "results.md").read_bytes() == before
    assert before.decode("utf-8") in capsys.readouterr().out
    assert run([str(plans / f"{name}.yaml"), "--learning_rate", "0.5"]) == 2
    assert "was run with learning_rate None, and the plan now has '0.5'" in capsys.readouterr().err


def test_every_published_placement_is_a_variant_and_every_title_has_one():
    names = yaml.safe_load((FOLDER / "positions_variants.yaml").read_text(encoding="utf-8"))
    assert set(PUBLISHED) < set(names) and set(TITLES) < set(names)


def test_rank_correlation_looks_at_order_alone():
    assert rank_correlation({name: 10 * loss**3 for name, loss in PUBLISHED.items()})[0] == pytest.approx(1)
    assert rank_correlation({name: -loss for name, loss in PUBLISHED.items()})[0] == pytest.approx(-1)
    swapped = {**PUBLISHED, "qk": PUBLISHED["qkvo"], "qkvo": PUBLISHED["qk"], "alibi": 1.0}
    assert rank_correlation(swapped)[0] == pytest.approx(1 - 6 * 2 / (9 * 80))
    assert rank_correlation({"qk": 1.0, "none": 2.0, "alibi": 3.0}) is None


def test_running_mean_takes_what_there_is_at_the_start():
    losses = np.array([[4.0, 2.0, 6.0, 0.0]])
    np.testing.assert_allclose(smoothed(losses, 2), [[4, 3, 4, 3]])


def test_step_of_a_bound_lies_on_the_line_between_two_evaluations():
    assert first_step_below([10, 20, 30], [5.0, 4.0, 3.0], 3.5) == 25
    assert first_step_below([10, 20, 30], [5.0, 4.0, 3.0], 2.0) is None
    assert first_step_below([10, 20, 30], [5.0, 4.0, 3.0], 5.5) == 10
    assert first_step_below([10], [5.0], 5.0) == 10


def test_deviation_of_one_value_is_not_shown():
    assert mean_and_deviation([1.23456]) == "1.2346"
    assert mean_and_deviation([1.0, 2.0, 3.0], 1) == "2.0 ± 1.0"
