"""Many documents in several processes and on Ray: the speed of each way. ``benchmark documents``."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tasks.common.reports.tables import as_markdown
from tasks.common.runs.run_folder import digest_of
from tasks.experiments.benchmarks.measuring import timed

PREDICT = (sys.executable, "-m", "paddle_rope", "predict")
SECONDS_A_DAY = 24 * 60 * 60
LOAD = 0.7  # share of the time that a machine should be at work if it is to keep up


def measure_ways(argv: Sequence[str], processes: Sequence[int], actors: Sequence[int], output: Path) -> str:
    """A Markdown table of ``paddle-rope predict`` run in several ways, each into its own folder in ``output``: speed,
    memory of the largest process in the first and in the last quarter, how many such processes a million
    documents a day need; and whether all results are equal. Finished documents are not computed again; their time was
    measured by the call that finished them.

    Args:
        argv: model folders, ``--input`` and further options of the command.
        processes: numbers of processes of this machine.
        actors: numbers of actors of Ray on this machine.
        output: folder.
    """
    ways = [*((f"processes_{count}", count, []) for count in processes)]
    ways += [(f"ray_{count}", count, ["--ray"]) for count in actors]
    rows, digests = [], {}
    for name, count, on_ray in ways:
        folder = output / name
        command = [*PREDICT, *argv, "--output", str(folder), "--processes", str(count), *on_ray]
        statuses: list[int] = []
        seconds = timed(lambda: statuses.append(subprocess.call(command)))["seconds"]  # noqa: B023
        if statuses[0]:
            raise SystemExit(statuses[0])  # the command has said why
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
