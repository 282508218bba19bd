"""How far training is, on a terminal and in a log file."""

import io
from types import SimpleNamespace

import pytest

from tasks.common.cli.progress import TrainingProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def trained(progress, steps=4, first=0):
    """What ``progress`` writes of a training from the step ``first``."""
    state = SimpleNamespace(is_local_process_zero=True, global_step=first, max_steps=steps)
    progress.on_train_begin(None, state, None)
    for state.global_step in range(first + 1, steps + 1):
        progress.on_step_end(None, state, None)
        progress.on_log(None, state, None, logs={"loss": 1 / state.global_step})
        progress.on_log(None, state, None, logs={"eval_f1": 0.5})
    progress.on_train_end(None, state, None)
    return progress.stream.getvalue()


def test_log_file_has_plain_lines_with_phase_steps_loss_and_what_is_left():
    lines = trained(TrainingProgress("training", 0.0, io.StringIO())).splitlines()
    assert lines[0].startswith("training: step 1 of 4, 0:0") and lines[0].endswith(" left")
    assert lines[1].startswith("training: step 2 of 4, loss 1, ")
    assert lines[2].startswith("training: step 3 of 4, loss 0.5, ") and len(lines) == 3


def test_log_file_of_a_short_training_has_no_line():
    assert trained(TrainingProgress("training", 3600.0, io.StringIO())) == ""


@pytest.mark.parametrize("first", [0, 2])
def test_terminal_has_one_bar_with_name_and_loss(first, monkeypatch):
    monkeypatch.setattr("tasks.common.cli.progress.SHOWN_AFTER", 0)
    shown = trained(TrainingProgress("masked language modeling", 0.0, Terminal()), first=first)
    assert shown.startswith("\rmasked language modeling:") and shown.endswith("\n") and shown.count("\n") == 1
    last = shown.split("\r")[-1]
    assert "4/4" in last and "loss 0.25" in last
