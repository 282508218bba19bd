"""paddle-rope experiment: the runs of a plan, and tables of their scores."""

import sys

from tasks.commands.options import new_parser
from tasks.common.tool.process import prepare
from tasks.common.tool.run_config import parse_overrides

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
    parser = new_parser("experiment", EXPERIMENT, allow_abbrev=False)
    parser.add_argument("plan", metavar="PLAN", help="YAML file")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", default=(), help="train these variants alone")
    parser.add_argument("--cases", nargs="+", metavar="CASE", default=(), help="train these cases alone")
    parser.add_argument("--seeds", metavar="SEEDS", help="instead of the plan's, such as 42,43")
    parser.add_argument("--table", action="store_true", help="train nothing, write the tables of what is finished")
    parser.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options, settings = parser.parse_known_args(words)
    settings = parse_overrides(settings)
    prepare()
    from tasks.experiments.engine import run_plan

    failed = run_plan(
        options.plan, options.output_dir, options.only, options.cases, options.seeds, settings,
        options.device, options.table,
    )  # fmt: skip
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)
    return 1 if failed else 0
