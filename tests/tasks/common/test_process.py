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


@pytest.mark.parametrize("home", ["file", "file/home/user", "home", "link", "relative"])
def test_a_useless_home_is_replaced_until_the_end_of_the_process(home, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.cache").write_text("")  # where a folder should be
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", home if home == "relative" else str(tmp_path / home))
    at_end = []
    monkeypatch.setattr("atexit.register", lambda *call: at_end.append(call))
    ensure_home()
    made = Path(os.environ["HOME"])
    assert made.parent == tmp_path and made.stat().st_mode & 0o777 == 0o700 and list(made.iterdir()) == []
    ((remove, folder, process),) = at_end
    remove(folder, process + 1)
    assert made.is_dir()
    remove(folder, process)
    assert not made.exists()


@pytest.mark.parametrize("exists", [True, False])
def test_a_home_that_can_be_used_stays_and_nothing_is_made_in_it(exists, monkeypatch, tmp_path):
    if exists:
        (tmp_path / "home/.cache").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    ensure_home()
    assert os.environ["HOME"] == str(tmp_path / "home") and sorted(tmp_path.rglob("*")) == before


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
