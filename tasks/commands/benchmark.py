"""paddle-rope benchmark: time and memory."""

import argparse

from tasks.common.errors import OneLineArgumentParser

LENGTH = """\
Measure time and peak memory against the length of the text, training and prediction.

    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/speed.yaml
    OMP_NUM_THREADS=1 paddle-rope benchmark length configs/experiments/ner_length.yaml

Each cell (job, variant, length) has a process of its own, whose peak memory is then its own; the fastest of two or
three runs counts. A length is left out where the lengths before it foresee that it would pass a limit of the plan.
Writes speed.csv, speed.md and speed.png. Call it again to resume: what is in the table is not measured again."""


def benchmark_length(words):
    """Do what the words after ``paddle-rope benchmark length`` say; returns the exit status."""
    parser = OneLineArgumentParser(
        prog="paddle-rope benchmark length", description=LENGTH, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", metavar="PLAN", help="YAML file; its keys are described in docs/experiments/README.md")
    parser.add_argument("--output_dir", metavar="FOLDER", help="instead of the plan's")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(words)

    from paddle_rope.machine import import_paddle, prepare_machine

    prepare_machine()
    import_paddle()
    from tasks.experiments.speed import run_speed_plan

    print(run_speed_plan(options.plan, options.output_dir, options.device))
    return 0
