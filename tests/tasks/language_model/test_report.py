"""The report of several language models."""

import numpy as np
import pytest
import yaml
from PIL import Image

from paddle_rope.tasks.commands.experiment import experiment
from paddle_rope.tasks.common.errors import exit_status
from paddle_rope.tasks.language_model.report import PUBLISHED, rank_correlation
from tests.conftest import REPOSITORY
from tests.tasks.tiny_recipes import KEYS

FOLDER = REPOSITORY / "configs" / "experiments"


def rows_of(text, title):
    """The cells of the table of a section, by its first column."""
    lines = text.split(f"## {title}\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return {row[0]: dict(zip(rows[0], row)) for row in rows[2:]}


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
def test_a_plan_of_language_models_leaves_the_report(write, tmp_path):
    plan = yaml.safe_load((FOLDER / "positions_demo.yaml").read_text(encoding="utf-8"))
    plan["settings"] = {**plan["settings"], **KEYS["language_model"], "max_steps": 2, "evaluation_times": "1,2,4"}
    del plan["settings"]["rotary"]
    variants = str(FOLDER / "positions_variants.yaml")
    plan.update(seeds=[1], output_dir=str(tmp_path / "out"), variants_file=variants)
    words = [str(write(plan, "plan.yaml")), "--only", "qk", "learned", "theta"]
    assert exit_status(experiment, words) == 0
    longer = rows_of((tmp_path / "out/results.md").read_text(encoding="utf-8"), "Texts longer than in training")
    assert {"qk", "learned", "qk, NTK x2", "qk, YaRN x4"} < set(longer) and longer["qk"]["32"]
    assert longer["learned"]["8"] and longer["learned"]["16"] == ""
    assert np.asarray(Image.open(tmp_path / "out/curves.png").convert("L")).std() > 1
