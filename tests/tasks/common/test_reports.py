"""Tables as CSV and Markdown; the table and picture of a run's epochs."""

import csv
import io

import numpy as np
import pytest
from PIL import Image

from tasks.common.reports.figures import write_epochs
from tasks.common.reports.tables import as_csv, as_markdown

ROWS = [{"name": "a|b, c", "value": 1.5, "other": 3}, {"name": "d", "value": 2}]
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


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_reads_back_and_markdown_keeps_bars_inside_cells():
    assert read(as_csv(ROWS, ["name", "value"])) == [{"name": "a|b, c", "value": "1.5"}, {"name": "d", "value": "2"}]
    assert as_markdown(ROWS, ["name", "value"]) == "| name | value |\n| --- | ---: |\n| a\\|b, c | 1.5 |\n| d | 2 |\n"


def test_epochs_have_their_mean_loss_and_the_scores_that_are_asked_for(tmp_path):
    write_epochs(tmp_path, HISTORY, ("f1", "recall"))
    assert read((tmp_path / "epochs.csv").read_text(encoding="utf-8")) == [
        {"epoch": "1", "step": "10", "training loss": "1.5", "dev f1": "0.25"},
        {"epoch": "2", "step": "20", "training loss": "", "dev f1": "0.123456"},
    ]
    assert np.asarray(Image.open(tmp_path / "epochs.png").convert("L")).std() > 1
    write_epochs(tmp_path, HISTORY[:2], ("f1",))  # without dev
    assert (tmp_path / "epochs.csv").read_text(encoding="utf-8") == "epoch,step,training loss\n1,10,1.5\n"
