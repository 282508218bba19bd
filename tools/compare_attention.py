#!/usr/bin/env python
"""Compare kinds of attention: scores of training runs, or time and memory against length.

    python tools/compare_attention.py runs PLAN.yaml [--only VARIANT ...] [--cases CASE ...] [--seeds 42,43]
    python tools/compare_attention.py runs PLAN.yaml --table
    python tools/compare_attention.py speed PLAN.yaml [--output_dir FOLDER]

The plans are in configs/compare_attention/; docs/attention.md describes their keys. `runs` trains each cell (case,
variant, seed) in a process of its own into OUTPUT_DIR/runs. After every cell the tables of all finished ones are
written: runs.csv (each run), summary.md (mean and spread of the seeds, points against the reference), scores.png. Call
it again to go on: what is finished is not run again, an interrupted run goes on from its last checkpoint; results of
other keys than the plan now has are refused. Several calls may run side by side: each takes cells that no other has.
`--table` only writes the tables. `speed` writes speed.csv, speed.md and speed.png in the same way, but one call at a
time.
"""

import bootstrap  # noqa: F401

import argparse
import json
import sys
from pathlib import Path

from tqdm import tqdm

from paddle_rope.machine import machine_in_words
from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.common.files import atomic_writer, check_makeable


def compare_runs(options):
    """Train what is not finished, and write the tables after each run."""
    from tasks.experiments.plan import read_plan
    from tasks.experiments.running import (
        check_cells,
        check_configs,
        is_finished,
        keep_scores_only,
        run_apart,
    )

    plan = read_plan(options.plan, options.output_dir, options.seeds)
    check_makeable(plan.output_dir, "--output_dir")
    for name, wanted, known in (("only", options.only, plan.variants), ("cases", options.cases, plan.cases)):
        for one in wanted or ():
            if one not in known:
                raise InputError(f"--{name} {one}: the plan has {', '.join(known)}")
    cells = [
        cell
        for cell in plan.cells
        if (not options.only or cell.variant in options.only) and (not options.cases or cell.case in options.cases)
    ]
    check_cells(plan.recipe, plan.cells)
    failed = {}
    if not options.table:
        if options.device is not None:
            for cell in cells:
                cell.config["device"] = options.device
        check_configs(plan.recipe, cells)
        for cell in tqdm(cells, unit="run", disable=not sys.stderr.isatty()):
            if is_finished(cell):
                continue
            print(f"---- {cell.name}", flush=True)
            failed[cell.name] = run_apart(plan.recipe, cell, Path(__file__).resolve())
            if is_finished(cell):
                keep_scores_only(cell.folder)
            write_tables(plan)
    print(write_tables(plan), end="")
    failed = {name: reason for name, reason in failed.items() if reason}
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)
    return 1 if failed else 0


def write_tables(plan):
    """Write runs.csv, summary.md and scores.png of what is finished; returns the summary."""
    from tasks.common.reports.tables import as_csv, as_markdown
    from tasks.experiments.figure import draw
    from tasks.experiments.results import run_columns, run_rows, summary_columns, summary_rows

    rows = run_rows(plan)
    if not rows:
        return "no run is finished\n"
    summary, columns = summary_rows(plan, rows), summary_columns(plan)
    table = as_markdown([{head: row.get(key, "") for head, key in columns.items()} for row in summary], list(columns))
    text = f"{machine_in_words()}; seeds {', '.join(map(str, plan.seeds))}\n\n{table}"
    for name, content in (
        ("runs.csv", as_csv(rows, run_columns(plan)).encode("utf-8")),
        ("summary.md", text.encode("utf-8")),
        ("scores.png", draw(plan, summary)),
    ):
        with atomic_writer(plan.output_dir / name, binary=True) as file:
            file.write(content)
    return text


def compare_speed(options):
    """Measure what is not in the table yet."""
    from tasks.common.tool.device import choose_device
    from tasks.experiments import speed

    plan = speed.read_speed_plan(options.plan, options.output_dir)
    check_makeable(plan.output_dir, "--output_dir")
    plan.output_dir.mkdir(parents=True, exist_ok=True)
    table = plan.output_dir / "speed.csv"
    rows = []
    earlier = speed.read_rows(table)
    device = choose_device(options.device)
    speed.claim_options(plan, earlier, device)
    total = len(speed.JOBS) * len(plan.variants) * len(plan.lengths)
    cells = speed.measure_all(plan, earlier, Path(__file__).resolve(), device)
    for row in tqdm(cells, total=total, unit="cell", disable=not sys.stderr.isatty()):
        rows.append(row)
        result = row["left_out"] and f"left out: {row['left_out']}"
        result = result or f"{row['seconds']:9.3f} s {row['peak_mb']:7} MB"
        print(f"{row['job']:7} {row['variant']:24} {row['length']:7}  {result}", flush=True)
        measured = {(one["job"], one["variant"], one["length"]) for one in rows}
        later = [one for one in earlier if (one["job"], one["variant"], one["length"]) not in measured]
        speed.write_rows(table, [*rows, *later])
    page = speed.as_page(plan, rows, machine_in_words())
    for name, content in (("speed.md", page.encode("utf-8")), ("speed.png", speed.draw(plan, rows))):
        with atomic_writer(plan.output_dir / name, binary=True) as file:
            file.write(content)
    print(page.split("\n\n| job | variant | length", 1)[0])
    return 0


@exit_on_input_error
def main(argv=None):
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["--cell"]:  # the process of one training run
        from tasks.experiments.running import train_cell

        train_cell(words[1])
        return 0
    if words[:1] == ["--measure"]:  # the process of one measurement
        from tasks.experiments.speed import measure

        print(json.dumps(measure(words[1], json.loads(words[2]), int(words[3]), words[4])))
        return 0
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB", parser_class=OneLineArgumentParser)
    runs = jobs.add_parser("runs", help="scores of training runs")
    speed = jobs.add_parser("speed", help="time and memory against length")
    for job in (runs, speed):
        job.add_argument("plan", metavar="PLAN", help="YAML file")
        job.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
        job.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    runs.add_argument("--only", nargs="+", metavar="VARIANT", help="train these variants alone")
    runs.add_argument("--cases", nargs="+", metavar="CASE", help="train these cases alone")
    runs.add_argument("--seeds", metavar="SEEDS", help="instead of the plan's, such as 42,43")
    runs.add_argument("--table", action="store_true", help="train nothing, write the tables of what is finished")
    options = parser.parse_args(words)
    return compare_runs(options) if options.job == "runs" else compare_speed(options)


if __name__ == "__main__":
    sys.exit(main())
