"""Signals end a run where it can be resumed, with one line."""

import os
import signal

import pytest

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


@pytest.mark.parametrize("number", SIGNALS)
def test_command_ends_with_one_line_and_the_status_that_shells_expect(tmp_path, number, capsys):
    @exit_on_input_error
    def main(words):
        with interruptible(), explained(tmp_path):
            send(number)

    assert main([]) == 128 + number
    expected = f"{tmp_path}: ended by a signal; train anew: no checkpoint had been written\n"
    assert capsys.readouterr().err == expected
    (tmp_path / "checkpoints/checkpoint-3").mkdir(parents=True)
    (tmp_path / "checkpoints/checkpoint-3/complete").touch()
    assert main([]) == 128 + number
    expected = f"{tmp_path}: ended by a signal; go on with: {own_command()} train --resume {tmp_path}\n"
    assert capsys.readouterr().err == expected


def test_ctrl_c_elsewhere_is_one_line(capsys):
    @exit_on_input_error
    def main(words):
        raise KeyboardInterrupt

    assert main([]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(27, "File too large")])
def test_full_disk_is_one_line_that_says_how_it_goes_on(tmp_path, error):
    (tmp_path / "checkpoints/before/checkpoint-3").mkdir(parents=True)
    (tmp_path / "checkpoints/before/checkpoint-3/complete").touch()
    with pytest.raises(InputError) as raised, explained(tmp_path):
        raise error
    expected = f"make room, then go on with: {own_command()} train --resume {tmp_path}"
    assert str(raised.value) == f"{tmp_path}: no room left to write ({error}); {expected}"


def test_full_disk_is_seen_where_safetensors_says_it(tmp_path):
    from safetensors import SafetensorError

    words = "Error while serializing: I/O error: No space left on device (os error 28)"
    with pytest.raises(InputError, match="make room"), explained(tmp_path):
        raise SafetensorError(words)


def test_folder_that_was_removed_meanwhile_is_told(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(InputError) as raised, explained(folder):
        (folder / "vdl" / "log").open("a")
    assert str(raised.value) == f"{folder}: was removed while the run worked in it; train anew"
    with pytest.raises(FileNotFoundError), explained(folder):
        (tmp_path / "other").open()


def test_other_errors_stay_what_they_are(tmp_path):
    with pytest.raises(PermissionError), explained(tmp_path):
        raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    "error",
    [MemoryError("std::bad_alloc"), RuntimeError("(ResourceExhausted) Fail to alloc memory"), SystemError("bad_alloc")],
)
def test_memory_that_does_not_suffice_is_one_line_with_the_remedy(tmp_path, error):
    with pytest.raises(InputError) as raised, explained(tmp_path):
        raise error
    assert str(raised.value).startswith(f"{tmp_path}: out of memory; train anew with shorter texts, a smaller ")
    assert "--recompute true, or end other programs" in str(raised.value)


def test_a_mistake_is_not_taken_for_too_little_memory(tmp_path):
    with pytest.raises(RuntimeError, match="a mistake"), explained(tmp_path):
        raise RuntimeError("a mistake")
