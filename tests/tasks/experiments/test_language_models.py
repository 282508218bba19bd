"""The report of language models, on results that were made up and on tiny runs."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from tasks.commands.experiment import experiment
from tasks.common.errors import exit_on_input_error
from tasks.common.reports.tables import mean_and_deviation
from tasks.experiments.language_models import PUBLISHED, rank_correlation, report
from tests.tasks.language_model.conftest import TINY

FOLDER = Path(__file__).resolve().parents[3] / "configs" / "experiments"
LOSSES = {"qk": 2.0, "v": 2.5, "none": 3.0, "rope": 1.5}


def result(variant, seed):
    loss = LOSSES[variant] + seed / 100
    lengths = [{"scaling": scaling, "length": length, "loss": loss + length, "by_position": [loss] * length}
               for scaling in ("none", "NTK x2") for length in (4, 8)]  # fmt: skip
    return {
        "variant": variant, "seed": seed, "dev": {"loss": loss}, "lengths": lengths,
        "training": [[n, loss + 1 / n] for n in range(1, 5)], "held_out": [[2, loss + 1], [4, loss]],
        "seconds_per_step": 0.5, "theta_start": [1.0, 0.1], "theta_end": [1.5, 0.1],
    }  # fmt: skip


def rows_of(text, title):
    """The cells of the table of a section, by its first column."""
    lines = text.split(f"## {title}\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return {row[0]: dict(zip(rows[0], row)) for row in rows[2:]}


def test_losses_lengths_and_frequencies_are_those_of_the_runs():
    files = report([result(variant, seed) for variant in LOSSES for seed in (1, 2)])
    text = files["results.md"]
    losses = rows_of(text, "Held-out loss")
    assert losses["v"]["held-out loss"] == mean_and_deviation([2.51, 2.52]) and losses["v"]["published"] == "2.856"
    assert losses["none"]["over QK"] == "+1.0000 ± 0.0000" and losses["rope"]["published"] == ""
    longer = rows_of(text, "Texts longer than in training")
    assert len(longer) == 8 and longer["qk, NTK x2"]["8"] == mean_and_deviation([10.01, 10.02])
    assert rows_of(text, "Learned frequencies")["qk"]["largest relative change"] == "0.500 ± 0.000"
    for name in ("curves.png", "lengths.png"):
        assert files[name].startswith(b"\x89PNG")


def test_rank_correlation_looks_at_order_alone():
    def correlation(losses):
        return rank_correlation({name: [{"dev": {"loss": loss}}] for name, loss in losses.items()})

    assert ": 1.000 (p = " in correlation({name: 10 * loss**3 for name, loss in PUBLISHED.items()})
    assert ": -1.000 " in correlation({name: -loss for name, loss in PUBLISHED.items()})
    swapped = {**PUBLISHED, "qk": PUBLISHED["qkvo"], "qkvo": PUBLISHED["qk"], "alibi": 1.0}
    assert f": {1 - 6 * 2 / (9 * 80):.3f} " in correlation(swapped)
    assert correlation({"qk": 1.0, "none": 2.0, "alibi": 3.0}) == ""
    assert set(PUBLISHED) < set(yaml.safe_load((FOLDER / "positions_variants.yaml").read_text(encoding="utf-8")))


@pytest.mark.slow
def test_a_plan_of_language_models_leaves_the_report(tmp_path):
    plan = yaml.safe_load((FOLDER / "positions_demo.yaml").read_text(encoding="utf-8"))
    plan["settings"] = {**plan["settings"], **TINY, "max_steps": 2}
    variants = str(FOLDER / "positions_variants.yaml")
    plan.update(seeds=[1], output_dir=str(tmp_path / "out"), variants_file=variants)
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    words = [str(tmp_path / "plan.yaml"), "--only", "qk", "learned", "theta"]
    assert exit_on_input_error(experiment)(words) == 0
    longer = rows_of((tmp_path / "out/results.md").read_text(encoding="utf-8"), "Texts longer than in training")
    assert {"qk", "learned", "qk, NTK x2", "qk, YaRN x4"} < set(longer) and longer["qk"]["32"]
    assert longer["learned"]["8"] and longer["learned"]["16"] == ""
    for name in ("curves.png", "lengths.png"):
        assert np.asarray(Image.open(tmp_path / "out" / name).convert("L")).std() > 1
