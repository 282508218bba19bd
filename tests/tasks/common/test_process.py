"""The working process: a home folder that can be written, its device, and commands that can be pasted from messages."""

import os
import subprocess
import tempfile
from pathlib import Path

import paddle
import pytest

from tasks.common.errors import InputError
from tasks.common.process import choose_device, ensure_home, own_command, visualdl_command
from tests.conftest import REPOSITORY


@pytest.mark.parametrize("home", ["file", "file/home/user", "nowhere", "relative", "usable"])
def test_a_useless_home_is_replaced_until_the_end_of_the_process(home, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "usable").mkdir()
    given, at_end = home if home == "relative" else str(tmp_path / home), []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", given)
    monkeypatch.setattr("atexit.register", at_end.append)
    ensure_home()
    made = Path(os.environ["HOME"])
    if home == "usable":
        assert str(made) == given and list(made.iterdir()) == at_end == []
        return
    assert made.parent == tmp_path and made.stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as in_a_copy:
        in_a_copy.setattr(os, "getpid", lambda: 1)
        at_end[0]()
        assert made.is_dir()
    at_end[0]()
    assert not made.exists()


def test_a_gpu_is_taken_where_there_is_one(monkeypatch):
    chosen = []
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: False)
    assert choose_device() == choose_device("cpu") == paddle.get_device() == "cpu"
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: True)
    monkeypatch.setattr(paddle.device.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(paddle, "set_device", chosen.append)
    assert choose_device() == "gpu" and choose_device("gpu:1") == "gpu:1"
    assert chosen == ["gpu", "gpu:1"]


@pytest.mark.parametrize("name", ["abacus", "gpu", "gpu:0", "cpu:7", ""])
def test_unusable_device_is_an_error_with_the_remedy(monkeypatch, name):
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: False)
    with pytest.raises(InputError, match=f"^--device {name}: .*use --device cpu"):
        choose_device(name)
    assert paddle.get_device() == "cpu"


@pytest.mark.parametrize("command, said", [(own_command, "paddle-rope "), (visualdl_command, "VisualDL")])
def test_commands_run_as_they_are_printed(command, said):
    done = subprocess.run(f"{command()} --version", shell=True, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout.startswith(said), done.stderr
