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
from tasks.experiments.reports.positions import PUBLISHED, TITLES, rank_correlation
from tests.tasks.language_model.conftest import TINY

FOLDER = Path(__file__).resolve().parents[3] / "configs" / "experiments"
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


def rows_of(path, title):
    """The cells of a table of results.md, by its first column."""
    lines = path.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return {row[0]: dict(zip(rows[0], row)) for row in rows[2:]}


@pytest.mark.slow
def test_positions_are_reported_with_every_loss(plans):
    results, losses = plans / "positions/results.md", {}
    for line in read(plans / "positions/runs.csv"):
        losses.setdefault(line["variant"], []).append(float(line["held-out loss"]))
    assert {variant: len(of_seeds) for variant, of_seeds in losses.items()} == dict.fromkeys(VARIANTS, 2)
    placed = rows_of(results, "Where RoPE turns")
    assert {name: row["published"] for name, row in placed.items()} == {"QK": "2.712", "NoPE": "2.795", "V": "2.856"}
    assert placed["NoPE"]["ours"] == mean_and_deviation(losses["none"])
    assert set(rows_of(results, "Other ways to know a position")) == {"learned positions", "QK, learned theta"}
    longer = rows_of(results, "Texts longer than in training")
    scaled = {f"QK, {scaling}" for scaling in ("NTK x2", "YaRN x2", "NTK x4", "YaRN x4")}
    assert set(longer) == {"QK", "NoPE", "V", "learned positions", "QK, learned theta", *scaled}
    assert longer["QK"]["8"] == mean_and_deviation(losses["qk"]) and longer["QK"]["32"]
    assert longer["learned positions"]["8"] and longer["learned positions"]["16"] == ""
    (changes,) = rows_of(results, "Learned frequencies").values()
    assert all(float(cell.split()[0]) > 0 for cell in list(changes.values())[1:])
    for name in ("lengths.png", "theta.png"):
        assert is_drawn(plans / "positions" / name)


@pytest.mark.slow
def test_performers_have_curves_of_every_seed(plans):
    points = read(plans / "performer/curves.csv")
    assert {(line["variant"], line["seed"], line["text"]) for line in points} == {
        (row, seed, text) for row in ("rope", "none", "learned") for seed in "12" for text in ("training", "held_out")
    }
    text = (plans / "performer/results.md").read_text(encoding="utf-8")
    assert "| Performer with RoPE | " in text and text.count("- Last held-out loss of") == 2
    assert is_drawn(plans / "performer/curves.png")
    config = yaml.safe_load((plans / "performer/runs/rope/seed_1/config.yaml").read_text(encoding="utf-8"))
    assert (config["attention"], config["feature_map"], config["normalizer"]) == ("linear", "favor", "unrotated")


def test_every_published_placement_is_a_variant_and_every_title_has_one():
    names = yaml.safe_load((FOLDER / "positions_variants.yaml").read_text(encoding="utf-8"))
    assert set(PUBLISHED) < set(names) and set(TITLES) < set(names)


def test_rank_correlation_looks_at_order_alone():
    assert rank_correlation({name: 10 * loss**3 for name, loss in PUBLISHED.items()}).startswith("1.000 (p = ")
    assert rank_correlation({name: -loss for name, loss in PUBLISHED.items()}).startswith("-1.000 ")
    swapped = {**PUBLISHED, "qk": PUBLISHED["qkvo"], "qkvo": PUBLISHED["qk"], "alibi": 1.0}
    assert rank_correlation(swapped).startswith(f"{1 - 6 * 2 / (9 * 80):.3f} ")
    assert rank_correlation({"qk": 1.0, "none": 2.0, "alibi": 3.0}) is None
