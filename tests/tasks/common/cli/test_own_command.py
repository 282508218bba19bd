"""The command in messages can be pasted."""

import subprocess
import sys
from pathlib import Path

import pytest

from tasks.common.cli.own_command import own_command, quoted, visualdl_command

REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A folder with an environment ``.venv`` whose programs do nothing, as the working folder."""
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name in ("python", "paddle-rope"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    return programs


@pytest.mark.parametrize(
    "called", [".venv/bin/paddle-rope", "{}/paddle-rope", "tools/train_ner.py", "/x/pytest/__main__.py"]
)
def test_script_of_the_environment_is_named_from_the_working_folder(environment, monkeypatch, called):
    monkeypatch.setattr(sys, "argv", [called.format(environment), "train"])
    assert own_command() == ".venv/bin/paddle-rope"


def test_what_the_search_path_finds_needs_no_folder(environment, monkeypatch):
    monkeypatch.setenv("PATH", str(environment))
    monkeypatch.setattr(sys, "argv", [str(environment / "paddle-rope")])
    assert own_command() == "paddle-rope"
    monkeypatch.setattr(sys, "argv", ["/x/paddle_rope/__main__.py"])
    assert own_command() == "python -m paddle_rope"


def test_module_is_called_as_a_module_with_the_same_python(environment, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/x/paddle_rope/__main__.py"])
    assert own_command() == ".venv/bin/python -m paddle_rope"
    monkeypatch.setattr(sys, "argv", [""])
    (environment / "paddle-rope").unlink()
    assert own_command() == ".venv/bin/python -m paddle_rope"


def test_visualdl_is_named_as_the_command_is(environment, monkeypatch):
    assert visualdl_command() == ".venv/bin/python -m visualdl.server.app"
    (environment / "visualdl").write_text("#!/bin/sh\n")
    (environment / "visualdl").chmod(0o755)
    assert visualdl_command() == ".venv/bin/visualdl"
    monkeypatch.setenv("PATH", str(environment))
    assert visualdl_command() == "visualdl"


def test_names_with_spaces_are_one_word():
    assert quoted(Path("my runs/a")) == "'my runs/a'"


def test_it_runs_as_it_is_printed():
    code = "import runpy, sys; sys.argv = ['paddle_rope/__main__.py']; "
    code += "from tasks.common.cli.own_command import own_command; print(own_command())"
    command = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True
    ).stdout.strip()
    done = subprocess.run(f"{command} --version", shell=True, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout.startswith("paddle-rope ")
