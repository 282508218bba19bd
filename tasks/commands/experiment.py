"""paddle-rope experiment, compare and decay: train and compare runs, and draw RoPE's decay."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from paddle_rope.tasks.commands.options import new_parser, whole
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import check_new_folder, read_json_object, write_files
from paddle_rope.tasks.common.process import prepare
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.common.run_config import parse_overrides, read_run_config
from paddle_rope.tasks.common.training.run import CONFIG_FILE, METRICS_FILE

EXPERIMENT = """\
Train the runs of a plan (case, variant, seed) and compare their scores.

    paddle-rope experiment configs/experiments/demo.yaml
    paddle-rope experiment PLAN.yaml [--only VARIANT ...] [--cases CASE ...] [--seeds 42,43] [--key value ...]
    paddle-rope experiment PLAN.yaml --table

The plans are in configs/experiments/; docs/results/experiments.md describes their keys. Runs go to OUTPUT_DIR/runs.
After each run the tables of all finished runs are written: runs.csv (each run), summary.md and summary.json (mean and
standard deviation over the seeds, points against the reference), and the files of the plan's report. Run the
command again to resume: finished runs are skipped, an interrupted run continues from its last checkpoint, and results
of other keys than the plan now has are refused. You can run the command several times at once: each process takes runs
that no other has. Any other --key value is a configuration key of all runs."""
COMPARE = """\
Print finished training runs of any recipe side by side, as a Markdown table: the configuration keys that differ, the
number of parameters, minutes of training, and the scores on dev and test."""
DECAY = """\
Draw the long-range decay of RoPE: the bound of kexue.fm 8265 and the dot products of all-ones vectors.

Writes decay_bound.png (mean |S_j| against the relative distance) and decay_ones.png (<R_m q, R_n k> with q = k = ones
against the key position n), each with the counter-examples where all pairs have the frequency 0 or 1, and prints the
numbers of some distances."""


def experiment(argv):
    parser = new_parser("experiment", EXPERIMENT, allow_abbrev=False)
    parser.add_argument("plan", metavar="PLAN", help="YAML file")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", default=(), help="train only these variants")
    parser.add_argument("--cases", nargs="+", metavar="CASE", default=(), help="train only these cases")
    parser.add_argument("--seeds", metavar="SEEDS", help="instead of the plan's, such as 42,43")
    parser.add_argument("--table", action="store_true", help="train nothing; write the tables of the finished runs")
    parser.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU if there is one)")
    options, settings = parser.parse_known_args(argv)
    settings = parse_overrides(settings)
    prepare()
    from paddle_rope.tasks.experiments.plan import run_plan

    chosen = (options.only, options.cases, options.seeds, settings, options.device, options.table)
    failed = run_plan(options.plan, options.output_dir, *chosen)
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)
    return 1 if failed else 0


def compare(argv):
    parser = new_parser("compare", COMPARE)
    parser.add_argument("runs", metavar="OUTPUT_DIR", nargs="+", type=Path, help="folder of a finished training run")
    folders = parser.parse_args(argv).runs
    print(compare_runs(folders), end="")


def compare_runs(folders: Sequence[Path]) -> str:
    """A Markdown table of the runs in some folders: the configuration keys that differ, parameters, minutes and
    scores. Raises InputError if a folder has no finished run."""
    configs = [read_run_config(folder / CONFIG_FILE) for folder in folders]
    keys = dict.fromkeys(key for config in configs for key in config if key != "output_dir")
    keys = [key for key in keys if any(config.get(key) != configs[0].get(key) for config in configs)]
    rows = []
    for folder, config in zip(folders, configs):
        metrics = read_json_object(folder / METRICS_FILE, "give the OUTPUT_DIR of a finished training run")
        row = {"run": folder.as_posix(), **{key: _shown(config.get(key)) for key in keys}}
        row["parameters"] = f"{metrics['parameters']:,}" if "parameters" in metrics else ""
        row["minutes"] = f"{metrics['train_seconds'] / 60:.1f}" if "train_seconds" in metrics else ""
        for split in ("dev", "test"):
            scores = (metrics.get(split) or {}).items()
            row.update({f"{split} {name}": f"{value:.4f}" for name, value in scores if isinstance(value, float)})
        rows.append(row)
    return as_markdown(rows)


def _shown(value):
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else value


def decay(argv):
    parser = new_parser("decay", DECAY)
    parser.add_argument("--head_dim", type=whole(2), default=128, help="size of a head, even (default: 128)")
    parser.add_argument("--base", type=float, default=10000.0, help="of theta_i = base^(-2i/head_dim) (default: 10000)")
    parser.add_argument("--max_distance", type=whole(1), default=256, help="largest relative distance (default: 256)")
    parser.add_argument("--query_position", type=whole(0), default=0, help="m of the all-ones figure (default: 0)")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where to write; new or empty")
    options = parser.parse_args(argv)
    if not 1 <= options.base < math.inf:
        raise InputError(f"--base {options.base}: must be 1 or more, and finite")
    if options.head_dim % 2:
        raise InputError(f"--head_dim {options.head_dim}: must be even, features turn in pairs")
    check_new_folder(options.output, "--output")
    prepare()
    from paddle_rope.tasks.experiments.long_range_decay import contents

    files, lines = contents(options)
    options.output.mkdir(parents=True, exist_ok=True)
    write_files(options.output, files)
    print("\n".join(lines))
    print(f"written to {options.output}: {', '.join(files)}")
