"""Many documents in several processes and on Ray: the speed of each way."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tasks.common.reports.tables import as_markdown
from tasks.common.runs.fingerprints import digest_of
from tasks.experiments.benchmarks.measuring import timed

PREDICT = (sys.executable, "-m", "paddle_rope", "predict")
SECONDS_A_DAY = 24 * 60 * 60
LOAD = 0.7  # of the time, that a machine which is to keep up should be at work


def measure_ways(argv: Sequence[str], processes: Sequence[int], actors: Sequence[int], output: Path) -> str:
    """Predict documents with ``paddle-rope predict`` in several ways, each into its own folder in ``output``. What is
    finished is not computed again; its time is that of the call that finished it.

    Args:
        argv: model folders, ``--input`` and further options of the command.
        processes: numbers of processes of this machine.
        actors: numbers of actors of Ray on this machine.
        output: folder.

    Returns:
        Markdown: documents per second, memory of the largest process in the first and in the last quarter, how many
        such processes a million documents a day need, and whether all gave the same results.
    """
    ways = {f"processes_{count}": (count, []) for count in processes}
    ways |= {f"ray_{count}": (count, ["--ray"]) for count in actors}
    rows, digests = [], {}
    for name, (count, on_ray) in ways.items():
        folder = output / name
        seconds = timed(lambda: _predict(argv, folder, count, on_ray))["seconds"]  # noqa: B023
        call = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["last_call"]
        digests[name] = [digest_of(path) for path in sorted(folder.glob("part-*.jsonl"))]
        a_day = call["documents_per_second"] * SECONDS_A_DAY
        rows.append(
            {
                "way": name,
                "documents": f"{call['answered']:,}",
                "seconds": round(call["seconds"]),
                "with start": round(max(seconds, call["seconds"])),
                "documents/s": round(call["documents_per_second"], 1),
                "MB, first quarter": call["megabytes_first"],
                "MB, last quarter": call["megabytes_last"],
                "million/day": round(a_day / 1e6, 2),
                f"processes for 1 million/day at {LOAD:.0%} load": math.ceil(1e6 / (a_day / count * LOAD)),
            }
        )
    different = [name for name in digests if digests[name] != next(iter(digests.values()))]
    note = f"The results of {', '.join(different)} differ from the first." if different else "All results are the same."
    return f"{as_markdown(rows, list(rows[0]))}\n{note}"


def _predict(argv, folder, count, on_ray):
    command = [*PREDICT, *argv, "--output", str(folder), "--processes", str(count), *on_ray]
    status = subprocess.run(command, check=False).returncode
    if status:
        raise SystemExit(status)  # the command has said why
