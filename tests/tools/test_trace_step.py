"""The way of a text from a labeled line to a trained step."""

import re
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

MOST_FILES, MOST_MOVES = 60, 100


@pytest.mark.slow
def test_a_single_text_reaches_a_trained_step_without_detours():
    words = [sys.executable, "tools/dev/trace_step.py"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    files, functions, moves, operators = map(int, re.findall(r"\d+", last))
    assert 20 < files <= MOST_FILES < functions and 20 < moves - operators <= MOST_MOVES
