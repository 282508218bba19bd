"""The parts of a run on Ray: on this machine or on a cluster whose machines see the same files.

Ray Data keeps a number of actors, each with a predictor of its own, and gives each of them a part at a time. An actor
that dies, or whose machine is lost, is replaced, and its part computed again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tasks.common.errors import InputError
from tasks.scaling.worker import Job, Part, PartWorker, open_job_predictor

LOCAL = "local"
ROOT = str(Path(__file__).resolve().parents[2])


class RayWorker:
    """A :class:`PartWorker` as Ray Data calls it: from a row to a row."""

    def __init__(self, job: Job):
        self._worker = PartWorker(job)

    def __call__(self, row: dict) -> dict:
        return self._worker(Part(**row))._asdict()
