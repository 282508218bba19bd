"""The folder and the data of a run that goes on, and what ends one from outside."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from paddle_rope.tasks.common.errors import InputError, Interrupted
from paddle_rope.tasks.common.training.data import NO_DATA
from paddle_rope.tasks.common.training.interruption import end, explained, interruptible, is_requested, until_saved
from paddle_rope.tasks.common.training.run import INPUTS_FILE, Run, data_files, fingerprints
from tests.tasks.ner.conftest import error_of

FILES = ("a.txt", "b.txt", "folder/x.ann", "\udcff.json")  # the last name is not UTF-8


@pytest.fixture
def config(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name[:3], encoding="utf-8", errors="replace")
    files = {"text_files": [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"], "train_file": f"{tmp_path}/folder"}
    return {**files, "dev_file": f"{tmp_path}/\udcff.json", "test_file": "", "output_dir": str(tmp_path / "run")}


def claim(config, checkpoint="checkpoint-1", is_begun=True):
    with contextlib.ExitStack() as stack:
        Run(config, None, None, {}, None, stack, NO_DATA, checkpoint, is_begun).claim()


@pytest.mark.parametrize("name, change", [
    *((name, lambda path: path.write_text("more", encoding="utf-8")) for name in (*FILES, "folder/y.ann")),
    ("b.txt", Path.unlink), ("folder/x.ann", lambda path: path.rename(path.with_name("z.ann"))),
])  # fmt: skip
def test_a_run_goes_on_with_the_data_that_it_began_with(config, tmp_path, name, change):
    claim(config, None, is_begun=False)
    (tmp_path / "folder" / "within").mkdir()  # which no reader looks into
    (tmp_path / "folder" / "within" / "y.ann").write_text("y")
    claim(config)
    change(tmp_path / name)
    said = "folder" if "folder" in name else name.replace("\udcff", "\\udcff")
    assert error_of(claim, config).startswith(f"{tmp_path}/{said}: has changed since the run began")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"1" * 5000, b"[" * 100_000], ids=lambda one: one[:9])
def test_damaged_inputs_are_one_line(config, tmp_path, content):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / INPUTS_FILE).write_bytes(content)
    assert "train anew" in (message := error_of(claim, config)) and "inputs.json: is " in message


def test_every_file_that_is_named_counts(config, tmp_path):
    assert len({*fingerprints(config).values()}) == 4
    files = {"train_texts": "32", "unlabeled_files": ["a", "additions"], "train_file": "demo", "dev_file": "-"}
    assert data_files(files) == ["a", "additions", "demo"] and data_files({"text_files": ["additions"]}) == []
    os.mkfifo(tmp_path / "pipe")
    assert fingerprints({"train_file": f"{tmp_path}/pipe"}) == {}  # and does not wait for a writer
    assert "xxx: cannot be read (File name too long); check" in error_of(fingerprints, {"train_file": "x" * 300})
    claim(config, None, is_begun=False)
    (tmp_path / "more.txt").write_text("x")
    assert "more.txt: has changed since" in error_of(claim, {**config, "test_file": str(tmp_path / "more.txt")})


# ---- what ends a run from outside
SIGNALS = (signal.SIGINT, signal.SIGTERM)
RESUME = "train --resume"


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
    "error, is_begun, said",  # is_begun None: the folder is gone; said None: the error stays what it is
    [
        (Interrupted(15), True, ("ended by a signal", RESUME)),  # its command: tests/tasks/ner/test_resume.py
        (Interrupted(2), False, ("ended by a signal", "train anew")),
        (OSError(28, "No space left on device"), True, ("make room", RESUME)),
        (OSError(27, "File too large"), False, ("make room", "train anew")),
        (MemoryError("std::bad_alloc"), True, ("out of memory", "--per_device_train_batch_size", "--recompute")),
        (RuntimeError("(ResourceExhausted) Fail to alloc memory"), True, ("out of memory",)),
        (FileNotFoundError(2, "No such file", "{}/vdl/log"), None, ("was removed while", "train anew")),
        (FileNotFoundError(2, "No such file", "/elsewhere"), None, None),
        (PermissionError(13, "Permission denied"), True, None),
        (RuntimeError("a mistake"), True, None),
    ],
    ids=repr,
)
def test_what_ends_a_run_from_outside_is_one_line_with_the_remedy(error, is_begun, said, tmp_path):
    folder = tmp_path / "run"
    if is_begun is not None:
        folder.mkdir()
    if is_begun:
        (folder / "config.yaml").touch()
    if isinstance(error, FileNotFoundError):
        error.filename = error.filename.format(folder)
    with pytest.raises((InputError, Interrupted) if said else type(error)) as raised, explained(folder):
        raise error
    if said:
        assert str(raised.value).startswith(f"{folder}: ")
        assert [part for part in said if part not in str(raised.value)] == []
