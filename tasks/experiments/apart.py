"""A process of its own for one training run or one measurement: its memory is its own, and so is its failure."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tasks.common.errors import Interrupted
from tasks.common.runs.interruption import interruptible

BUSY = 75  # exit status: another process has the run


def call_apart(job, given, **options):
    """Do a job in a process of its own; returns ``subprocess.CompletedProcess``. A signal to this process is handed on,
    so that a training run can write a checkpoint.

    Args:
        job: ``"train"``, of :func:`tasks.common.training.series.train_unless_finished`; ``"measure"``, of
            :func:`tasks.experiments.benchmarks.models.measure`; or ``"document"``, of
            :func:`tasks.experiments.benchmarks.long_document.measure_document`.
        given: dict of its arguments.
        options: of ``subprocess.Popen``.

    Raises:
        Interrupted: after a signal, when the process has ended.
    """
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    # -P: a tasks.py where the user works is not ours
    words = [sys.executable, "-P", "-m", "tasks.experiments.child", job]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    with (
        interruptible(),
        subprocess.Popen(words, stdin=subprocess.PIPE, text=True, env=environment, **options) as process,
    ):
        try:
            output, errors = process.communicate(json.dumps(given))
        except Interrupted as error:
            if error.number != signal.SIGINT:  # Ctrl-C has reached it, too
                process.send_signal(error.number)
            process.wait()
            raise Interrupted(error.number, "ended by a signal; the same command goes on") from None
    return subprocess.CompletedProcess(words, process.returncode, output, errors)
