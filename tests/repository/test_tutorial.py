"""The tutorial notebook runs from the first cell to the last."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.exports import FORMATS

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOK = REPOSITORY / "docs" / "guides" / "tutorial.ipynb"
FASTER = {"num_train_epochs: 25": "num_train_epochs: 10"}
PROGRAM = f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m paddle_rope "$@"\n'


def run_line(command):
    """What a line of a notebook does that begins with ``!``."""
    command = command.replace("--output exported", f"--output exported --format {FORMATS[0]}")
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"


@pytest.mark.slow
def test_every_cell_runs(tmp_path, monkeypatch):
    (tmp_path / "paddle-rope").write_text(PROGRAM)
    (tmp_path / "paddle-rope").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # as Jupyter does
    names = {"run_line": run_line}
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 10
    for cell in cells:
        source = "".join(cell["source"])
        for shown, done in FASTER.items():
            source = source.replace(shown, done)
        exec(re.sub(r"^!(.*)", lambda match: f"run_line({match[1]!r})", source, flags=re.MULTILINE), names)
    assert ("person", "韩美妍") in names["found"]
    assert names["after"]["f1"] > names["before"]["f1"] > 0.5
