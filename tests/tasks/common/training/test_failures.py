"""Signals end a run where it can be resumed, with one line."""

import os
import signal

import pytest
from safetensors import SafetensorError

from tasks.common.errors import InputError, Interrupted, exit_on_input_error
from tasks.common.runs.interruption import end, interruptible, is_requested, until_saved
from tasks.common.training.failures import explained

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CHECKPOINT, RESUME = "checkpoints/before/checkpoint-3/complete", "train --resume"
NO_ROOM = "Error while serializing: I/O error: No space left on device (os error 28)"


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_work_at_once_and_waits_for_a_checkpoint(number, capfd):
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(Interrupted) as raised, interruptible():
        send(number)
    assert raised.value.number == number
    with pytest.raises(Interrupted), interruptible(), until_saved():
        send(number)
        assert is_requested() and capfd.readouterr().err.count("\n") == 2
        end()
    with pytest.raises(Interrupted), interruptible(), until_saved():
        send(number)
        send(number)
        pytest.fail("the second signal waited, too")
    assert [signal.getsignal(number) for number in SIGNALS] == before and not is_requested()


@pytest.fixture
def folder(tmp_path, request):
    """The folder of a run with a checkpoint, without one, or, for None, no folder."""
    if request.param is not None:
        (tmp_path / "run" / CHECKPOINT).parent.mkdir(parents=True)
    if request.param:
        (tmp_path / "run" / CHECKPOINT).touch()
    return tmp_path / "run"


@pytest.mark.parametrize(
    "error, folder, said",
    [
        (Interrupted(15), True, ("ended by a signal", RESUME)),  # its command: tests/tasks/ner/test_resume.py
        (Interrupted(2), False, ("ended by a signal", "train anew")),
        (OSError(28, "No space left on device"), True, ("make room", RESUME)),
        (OSError(27, "File too large"), False, ("make room", "train anew")),
        (SafetensorError(NO_ROOM), True, ("make room", RESUME)),
        (MemoryError("std::bad_alloc"), True, ("out of memory", "--per_device_train_batch_size", "--recompute")),
        (RuntimeError("(ResourceExhausted) Fail to alloc memory"), True, ("out of memory",)),
        (SystemError("bad_alloc"), True, ("out of memory",)),
        (FileNotFoundError(2, "No such file", "{}/vdl/log"), None, ("was removed while", "train anew")),
        (FileNotFoundError(2, "No such file", "/elsewhere"), None, None),  # None: it stays what it is
        (PermissionError(13, "Permission denied"), True, None),
        (RuntimeError("a mistake"), True, None),
    ],
    indirect=["folder"],
    ids=repr,
)
def test_what_ends_a_run_from_outside_is_one_line_with_the_remedy(error, folder, said):
    if isinstance(error, FileNotFoundError):
        error.filename = error.filename.format(folder)
    with pytest.raises((InputError, Interrupted) if said else type(error)) as raised, explained(folder):
        raise error
    if said:
        assert str(raised.value).startswith(f"{folder}: ")
        assert [part for part in said if part not in str(raised.value)] == []


def test_ctrl_c_elsewhere_is_one_line(capsys):
    @exit_on_input_error
    def main(words):
        raise KeyboardInterrupt

    assert main([]) == 130 and capsys.readouterr().err == "interrupted\n"
