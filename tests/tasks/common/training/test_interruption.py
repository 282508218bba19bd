"""What ends a run from outside: where it can be resumed, and in one line."""

import os
import signal

import pytest
from safetensors import SafetensorError

from tasks.common.errors import InputError, Interrupted
from tasks.common.training.interruption import end, explained, interruptible, is_requested, until_saved

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CHECKPOINT, RESUME = "checkpoints/before/checkpoint-3/complete", "train --resume"
NO_ROOM = "Error while serializing: I/O error: No space left on device (os error 28)"


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_work_at_once_and_waits_for_a_checkpoint(number, capfd):
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(Interrupted) as raised, interruptible():
        os.kill(os.getpid(), number)
    assert raised.value.number == number
    with pytest.raises(Interrupted), interruptible(), until_saved():
        os.kill(os.getpid(), number)
        assert is_requested() and capfd.readouterr().err.count("\n") == 2
        end()
    with pytest.raises(Interrupted), interruptible(), until_saved():
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        pytest.fail("the second signal waited, too")
    assert [signal.getsignal(number) for number in SIGNALS] == before and not is_requested()


@pytest.mark.parametrize(
    "error, has_checkpoint, said",  # has_checkpoint None: the folder is gone; said None: the error stays what it is
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
        (FileNotFoundError(2, "No such file", "/elsewhere"), None, None),
        (FileNotFoundError(2, "No such file", "{}/vdl/log"), True, None),
        (PermissionError(13, "Permission denied"), True, None),
        (RuntimeError("a mistake"), True, None),
    ],
    ids=repr,
)
def test_what_ends_a_run_from_outside_is_one_line_with_the_remedy(error, has_checkpoint, said, tmp_path):
    folder = tmp_path / "run"
    if has_checkpoint is not None:
        (folder / CHECKPOINT).parent.mkdir(parents=True)
    if has_checkpoint:
        (folder / CHECKPOINT).touch()
    if isinstance(error, FileNotFoundError):
        error.filename = error.filename.format(folder)
    with pytest.raises((InputError, Interrupted) if said else type(error)) as raised, explained(folder):
        raise error
    if said:
        assert str(raised.value).startswith(f"{folder}: ")
        assert [part for part in said if part not in str(raised.value)] == []
