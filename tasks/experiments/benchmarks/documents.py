"""Many documents in several processes and on Ray: the speed of each way. ``benchmark documents``."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from typing import Any

from tasks.common.errors import InputError
from tasks.common.files import digest_of
from tasks.common.reports.tables import as_markdown

PREDICT = (sys.executable, "-m", "paddle_rope", "predict")
SECONDS_A_DAY = 24 * 60 * 60
LOAD = 0.7  # share of the time that a machine should be at work if it is to keep up


def run(options: Any) -> None:
    """Run ``paddle-rope predict`` in several ways, each into its own folder, and print a table: the speed, the memory
    of the largest process in the first and in the last quarter, how many such processes a million documents a day need;
    and whether all results are equal. Documents that an earlier call finished have the time of that call."""
    if not options.processes and not options.ray:
        raise InputError("--processes and --ray: give a number to one of them")
    sizes = ["--part_records", str(options.part_records), "--batch_size", str(options.batch_size)]
    command = [*PREDICT, *options.model_dirs, *sizes, "--input", *options.input]
    ways = {f"processes_{count}": (count, []) for count in options.processes}
    ways |= {f"ray_{count}": (count, ["--ray"]) for count in options.ray}
    rows, digests = [], {}
    for name, (count, more) in ways.items():
        folder, start = options.output / name, time.perf_counter()
        argv = [*command, "--output", str(folder), "--processes", str(count), *more]
        if status := subprocess.call(argv):
            raise SystemExit(status)  # the command has said why
        seconds = time.perf_counter() - start
        call = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["last_call"]
        digests[name] = [digest_of(path) for path in sorted(folder.glob("part-*.jsonl"))]
        a_day = call["documents_per_second"] * SECONDS_A_DAY
        rows.append({
            "way": name,
            "documents": f"{call['answered']:,}",
            "seconds": round(call["seconds"]),
            "with start": round(max(seconds, call["seconds"])),
            "documents/s": round(call["documents_per_second"], 1),
            "MB, first quarter": call["megabytes_first"],
            "MB, last quarter": call["megabytes_last"],
            "million/day": round(a_day / 1e6, 2),
            f"processes for 1 million/day at {LOAD:.0%} load": math.ceil(1e6 / (a_day / count * LOAD)),
        })  # fmt: skip
    different = [name for name in digests if digests[name] != next(iter(digests.values()))]
    print(as_markdown(rows, list(rows[0])))
    print(f"The results of {', '.join(different)} differ from the first." if different else "All results are the same.")
