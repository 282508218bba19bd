"""A process of its own for one training run or one measurement: its memory is its own, and so is its failure."""

import json
import os
import subprocess
import sys
from pathlib import Path

BUSY = 75  # exit status: another process has the run


def call_apart(job, given, **options):
    """Do a job in a process of its own; returns ``subprocess.CompletedProcess``.

    Args:
        job: ``"train"``, of :func:`tasks.experiments.cells.run_cell`; ``"measure"``, of
            :func:`tasks.experiments.benchmarks.models.measure`; or ``"document"``, of
            :func:`tasks.experiments.benchmarks.long_document.measure_document`.
        given: dict of its arguments.
        options: of ``subprocess.run``.
    """
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    # -P: a tasks.py where the user works is not ours
    words = [sys.executable, "-P", "-m", "tasks.experiments.child", job]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(words, input=json.dumps(given), text=True, env=environment, **options)
