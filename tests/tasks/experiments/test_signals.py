"""A signal to what has started a training run in a process of its own is handed on, and the run can go on."""

import contextlib
import os
import re
import signal
import threading
import time

import pytest

from tasks.common.errors import EXIT_BAD_INPUT, Interrupted
from tasks.common.training.checkpoints import has_checkpoint, last_checkpoint
from tasks.experiments.engine import train_apart
from tasks.ner.demo import write_demo_corpus

SECONDS = 120  # for the process to begin


@pytest.fixture
def cell(tmp_path):
    """A plan's cell of a tiny run that takes long."""
    train, dev = write_demo_corpus(tmp_path / "corpus", train_size=40, dev_size=5)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    return {
        "train_file": str(train), "dev_file": str(dev), "output_dir": str(tmp_path / "run"), "device": "cpu",
        "num_train_epochs": 1000, "max_steps": 4000, "logging_steps": 1, "head_size": 8, **sizes,
    }  # fmt: skip


@contextlib.contextmanager
def once_it_trains(folder, act):
    """Meanwhile, ``act`` when the first epoch is saved."""

    def wait():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not has_checkpoint(folder / "checkpoints"):
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


@pytest.mark.slow
def test_a_training_process_saves_before_the_one_that_started_it_ends(cell, tmp_path, capfd):
    folder = tmp_path / "run"
    with (
        once_it_trains(folder, lambda: os.kill(os.getpid(), signal.SIGTERM)),
        pytest.raises(Interrupted) as raised,
    ):
        train_apart("ner", cell)
    assert raised.value.number == signal.SIGTERM
    reached = int(last_checkpoint(folder / "checkpoints").name.rpartition("-")[2])
    assert 0 < reached < cell["max_steps"]
    assert re.search(f"go on with: .* train --resume {folder}", capfd.readouterr().err)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.slow
def test_a_process_of_its_own_finds_the_project_from_any_folder(tmp_path, monkeypatch, capfd):
    (tmp_path / "tasks.py").write_text("raise SystemExit(5)", encoding="utf-8")  # of the user's own
    monkeypatch.chdir(tmp_path)
    assert train_apart("none", {"output_dir": str(tmp_path / "runs/x")}) == EXIT_BAD_INPUT
    assert "no recipe 'none'" in capfd.readouterr().err
    assert not (tmp_path / "runs").exists()
