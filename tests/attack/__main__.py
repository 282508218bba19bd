"""Attack the readers of this project with mutants of files that a stranger may send.

    python -m tests.attack                                       10,000 mutants of each target
    python -m tests.attack --mutants 500 --seed 3 --format bio   fewer, and others, of one target

A mutant passes when it is read as it is, or refused in one line. A traceback, more than ten seconds of processor
time, more than 1 GB of memory, the death of the process, a message of several lines or with control characters, and
text or entities that get lost are failures. The mutant of a seed and a number is always the same. Exit status 1 if
there were any failures.
"""

import argparse
import importlib.util
import random
import re
import shutil
import sys
import warnings
from collections import Counter
from pathlib import Path

from tests.attack import folder_targets, settings_targets, tensor_targets, text_targets
from tests.attack.watchdog import Outcome, Target, Watchdog
from tests.helpers.models import FORMATS

OF_FILES = {one.name: one for one in (*text_targets.TARGETS, *tensor_targets.TARGETS)}  # quick, and need no model
TARGETS = {**OF_FILES, **{one.name: one for one in (*settings_targets.TARGETS, *folder_targets.TARGETS)}}
REQUIRED = {  # by some targets: modules, and what pip installs for them
    "exported_onnx": (("onnxruntime",), "'paddle_rope[onnx]'"),
    "request": (("fastapi", "uvicorn", "prometheus_client", "fastapi_offline"), "'paddle_rope[serve]'"),
    "tensorflow": (("tensorflow",), "'tensorflow-cpu<2.20'"),
}


def missing(name: str) -> str | None:
    """What is not installed for a target and how to install it, or None."""
    if name == "exported_onnx" and "onnx" not in FORMATS:
        return "models cannot be exported as ONNX with this Paddle; install Paddle 3"
    modules, packages = REQUIRED.get(name, ((), ""))
    lacking = [module for module in modules if importlib.util.find_spec(module) is None]
    return f"{', '.join(lacking)} not installed; pip install {packages}" if lacking else None


def attack(target: Target, mutants: int, seed: int, first=0, findings: Path | None = None):
    """(counts by the kind of outcome, failures by cause) of the mutants ``first`` to ``first + mutants`` of a seed. The
    files of the first mutant of each failure are copied to ``findings``."""
    counts, failures, samples = Counter(), {}, target.samples()
    with Watchdog(target) as dog:
        for number in range(first, first + mutants):
            name = f"{target.name}-{seed}-{number}"
            rng = random.Random(name)
            outcome = dog.read(target.mutate(rng.choice(samples), rng))
            counts[outcome.kind] += 1
            if not outcome.passed and cause(outcome) not in failures:
                failures[cause(outcome)] = f"{name}: {cause(outcome)}\n{outcome.detail[-800:]}"
                if findings is not None:
                    shutil.copytree(dog.folder, findings / name, dirs_exist_ok=True)
    return counts, failures


def cause(outcome: Outcome) -> str:
    """The same for failures of one cause: the kind, and the place in the source or the message without its numbers."""
    places = re.findall(r'File "([^"]+)", line (\d+)', outcome.detail)
    place = places[:1] if outcome.kind == "hang" else places[-1:]  # faulthandler writes the innermost call first
    return f"{outcome.kind} {place or re.sub('[0-9]+', '0', outcome.detail)[:60]}"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__.splitlines()[0])
    parser.add_argument("--format", nargs="+", choices=TARGETS, default=list(TARGETS), help="targets (default: all)")
    parser.add_argument("--mutants", type=int, default=10_000, help="of each target (default: 10,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--findings", type=Path, help="folder for the files of mutants that fail")
    options = parser.parse_args(argv)
    failed = False
    warnings.simplefilter("ignore")  # of archives with two members of one name
    for name in options.format:
        if lacking := missing(name):
            print(f"{name:18} SKIPPED: {lacking}")
            continue
        counts, failures = attack(TARGETS[name], options.mutants, options.seed, options.first, options.findings)
        print(f"{name:18} {counts.total():7} mutants: {dict(counts)}", *failures.values(), sep="\n    ", flush=True)
        failed |= bool(failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
