"""Signals end a run where it can be resumed, with one line."""

import os
import signal

import pytest
from safetensors import SafetensorError

from tasks.common.cli.own_command import own_command
from tasks.common.errors import InputError, Interrupted, exit_on_input_error
from tasks.common.runs.interruption import end, interruptible, is_requested, until_saved
from tasks.common.training.failures import explained

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_work_at_once_and_waits_for_a_checkpoint(number, capfd):
    with pytest.raises(Interrupted) as raised, interruptible():
        send(number)
    assert raised.value.number == number
    with pytest.raises(Interrupted), interruptible(), until_saved():
        send(number)
        assert is_requested()
        assert capfd.readouterr().err == "\nending after this step, with a checkpoint; once more: at once\n"
        end()
    with pytest.raises(Interrupted), interruptible(), until_saved():
        send(number)
        send(number)
        pytest.fail("the second signal waited, too")


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    with interruptible():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert not is_requested()


CHECKPOINT, RESUME = "checkpoints/before/checkpoint-3/complete", "train --resume"
NO_ROOM = "Error while serializing: I/O error: No space left on device (os error 28)"


@pytest.mark.parametrize(
    "error, has_checkpoint, said",
    [
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
    ids=repr,
)
def test_what_ends_a_run_from_outside_is_one_line_with_the_remedy(tmp_path, error, has_checkpoint, said):
    folder = tmp_path / "run"
    if has_checkpoint is not None:
        (folder / CHECKPOINT).parent.mkdir(parents=True)
    if has_checkpoint:
        (folder / CHECKPOINT).touch()
    if isinstance(error, FileNotFoundError):
        error.filename = error.filename.format(folder)
    with pytest.raises(InputError if said else type(error)) as raised, explained(folder):
        raise error
    if said:
        assert str(raised.value).startswith(f"{folder}: ")
        assert [part for part in said if part not in str(raised.value)] == []


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_command_ends_with_one_line_and_the_status_that_shells_expect(tmp_path, number, has_checkpoint, capsys):
    @exit_on_input_error
    def main(words):
        with interruptible(), explained(tmp_path):
            send(number)

    if has_checkpoint:
        (tmp_path / CHECKPOINT).parent.mkdir(parents=True)
        (tmp_path / CHECKPOINT).touch()
    assert main([]) == 128 + number
    error = capsys.readouterr().err
    assert error.startswith(f"{tmp_path}: ended by a signal; ") and error.count("\n") == 1
    assert (f"{own_command()} train --resume {tmp_path}" in error) == has_checkpoint


def test_ctrl_c_elsewhere_is_one_line(capsys):
    @exit_on_input_error
    def main(words):
        raise KeyboardInterrupt

    assert main([]) == 130
    assert capsys.readouterr().err == "interrupted\n"
