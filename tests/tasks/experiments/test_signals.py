"""A signal to a process that has started a training run in another one is handed on, and the run can go on."""

import os
import signal
import threading
import time

import pytest

from tasks.common.errors import EXIT_BAD_INPUT, Interrupted
from tasks.common.training.checkpoints import has_checkpoint, last_checkpoint
from tasks.experiments.engine import train_apart
from tests.tasks.tiny_recipes import KEYS, write_data

SECONDS = 120  # for the process to begin


@pytest.mark.slow
def test_a_training_process_saves_before_the_one_that_started_it_ends(tmp_path, capfd):
    folder, files = tmp_path / "run", write_data(tmp_path)["classification"]
    keys = {**KEYS["classification"], **files, "num_train_epochs": 1000, "max_steps": 4000, "output_dir": str(folder)}

    def end_once_it_trains():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not has_checkpoint(folder / "checkpoints"):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=end_once_it_trains)
    thread.start()
    with pytest.raises(Interrupted) as raised:
        train_apart("classification", keys)
    thread.join()
    assert raised.value.number == signal.SIGTERM
    assert 0 < int(last_checkpoint(folder / "checkpoints").name.rpartition("-")[2]) < keys["max_steps"]
    assert f"train --resume {folder}" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.slow
def test_a_process_of_its_own_finds_the_project_from_any_folder(tmp_path, monkeypatch, capfd):
    (tmp_path / "tasks.py").write_text("raise SystemExit(5)", encoding="utf-8")  # of the user's own
    monkeypatch.chdir(tmp_path)
    assert train_apart("none", {"output_dir": str(tmp_path / "runs/x")}) == EXIT_BAD_INPUT
    assert "no recipe 'none'" in capfd.readouterr().err
    assert not (tmp_path / "runs").exists()
