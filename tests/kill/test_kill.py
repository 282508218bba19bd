"""A slice of the kill test; all of it is ``python -m tests.kill``."""

import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.slow
def test_killed_works_end_as_undisturbed_ones():
    words = [sys.executable, "-m", "tests.kill", "--kills", "2", "--seed", "0", "--works", "save,download"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(words, env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count(": equal\n") == 2, done.stdout + done.stderr
