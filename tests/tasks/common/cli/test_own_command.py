"""The command in messages can be pasted."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.common.cli.own_command import own_command, quoted, visualdl_command
from tests.conftest import REPOSITORY


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The programs, which do nothing, of an environment ``.venv`` in the working folder."""
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name in ("python", "paddle-rope"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    return programs


def test_a_program_of_the_environment_is_named_as_it_is_found(programs, monkeypatch):
    assert own_command() == ".venv/bin/paddle-rope"
    assert visualdl_command() == ".venv/bin/python -m visualdl.server.app"  # there is no script of it
    other = Path(
        shutil.copytree(programs, "other")
    ).absolute()  # of another environment, with programs of the same names
    monkeypatch.setenv("PATH", str(other))
    assert own_command() == ".venv/bin/paddle-rope"
    monkeypatch.setenv("PATH", str(programs))
    assert own_command() == "paddle-rope"
    (programs / "paddle-rope").unlink()
    assert own_command() == "python -m paddle_rope"


def test_names_with_spaces_are_one_word():
    assert quoted(Path("my runs/a")) == "'my runs/a'"


def test_it_runs_as_it_is_printed():
    done = subprocess.run(f"{own_command()} --version", shell=True, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout.startswith("paddle-rope ")
