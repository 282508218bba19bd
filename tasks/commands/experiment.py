"""paddle-rope experiment: the runs of a plan, and their tables."""

import argparse
import sys

from tasks.common.errors import OneLineArgumentParser

EXPERIMENT = """\
Train the runs of a plan (case, variant, seed) and compare their scores.

    paddle-rope experiment configs/experiments/demo.yaml
    paddle-rope experiment PLAN.yaml [--only VARIANT ...] [--cases CASE ...] [--seeds 42,43] [--key value ...]
    paddle-rope experiment PLAN.yaml --table

The plans are in configs/experiments/; docs/experiments/README.md describes their keys. Runs go to OUTPUT_DIR/runs.
After every run the tables of all finished ones are written: runs.csv (each run), summary.md and summary.json (mean and
deviation of the seeds, points against the reference), scores.png, and the files of the plan's own report. Call it again
to resume: what is finished is not run again, an interrupted run continues from its last checkpoint; results of other
keys than the plan now has are refused. Several calls may run side by side: each takes runs that no other has. Any
--key value beside the options below is a configuration key of all runs."""


def experiment(words):
    """Do what the words after ``paddle-rope experiment`` say; returns the exit status."""
    parser = OneLineArgumentParser(
        prog="paddle-rope experiment", description=EXPERIMENT, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument("plan", metavar="PLAN", help="YAML file")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", help="train these variants alone")
    parser.add_argument("--cases", nargs="+", metavar="CASE", help="train these cases alone")
    parser.add_argument("--seeds", metavar="SEEDS", help="instead of the plan's, such as 42,43")
    parser.add_argument("--table", action="store_true", help="train nothing, write the tables of what is finished")
    parser.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options, rest = parser.parse_known_args(words)

    from paddle_rope.machine import import_paddle, prepare_machine

    prepare_machine()
    import_paddle()
    from tasks.common.tool.run_config import parse_overrides
    from tasks.experiments.engine import run_plan

    failed = run_plan(
        options.plan, options.output_dir, options.only or (), options.cases or (), options.seeds,
        parse_overrides(rest), options.device, options.table,
    )  # fmt: skip
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)
    return 1 if failed else 0
