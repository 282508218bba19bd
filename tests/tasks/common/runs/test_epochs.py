"""The table and picture of a run's epochs."""

import csv

import numpy as np
import pytest
from PIL import Image

from tasks.common.runs.epochs import epoch_rows, write_epochs

HISTORY = [
    {"loss": 2.0, "learning_rate": 0.1, "progress_or_epoch": 0.5, "step": 5},
    {"loss": 1.0, "learning_rate": 0.1, "progress_or_epoch": 1.0, "step": 10},
    {"eval_f1": 0.25, "eval_f1_by_type/a": 0.5, "progress_or_epoch": 1.0, "step": 10},
    {"eval_f1": 0.123456, "progress_or_epoch": 2.0, "step": 20},
    {"train_loss": 1.5, "progress_or_epoch": 2.0, "step": 20},
]


@pytest.fixture(scope="module", autouse=True)
def without_drawings():
    """They are drawn here."""


def test_rows_hold_the_mean_loss_and_the_scores_that_are_asked_for():
    assert epoch_rows(HISTORY, ("f1", "recall")) == [
        {"epoch": 1, "step": 10, "training loss": 1.5, "dev f1": 0.25},
        {"epoch": 2, "step": 20, "training loss": "", "dev f1": 0.123456},
    ]


def test_table_is_written_exact_and_rounded_with_a_picture(tmp_path):
    write_epochs(tmp_path, HISTORY, ("f1",))
    with open(tmp_path / "epochs.csv", encoding="utf-8") as file:
        assert [row["dev f1"] for row in csv.DictReader(file)] == ["0.25", "0.123456"]
    lines = (tmp_path / "epochs.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "| epoch | step | training loss | dev f1 |" and lines[3] == "| 2 | 20 |  | 0.1235 |"
    assert np.asarray(Image.open(tmp_path / "epochs.png").convert("L")).std() > 1

    write_epochs(tmp_path, HISTORY[:2], ("f1",))  # without dev
    assert (tmp_path / "epochs.csv").read_text(encoding="utf-8") == "epoch,step,training loss\n1,10,1.5\n"
