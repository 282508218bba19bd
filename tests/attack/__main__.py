"""Attack the readers of this project with mutants of what a stranger may send.

    python -m tests.attack                                       10,000 mutants of each target
    python -m tests.attack --minutes 5 --seed 3 --format bio     as many as five minutes allow
    python -m tests.attack --list

A mutant passes when it is read as it is, or refused in one line. A traceback, more than two seconds of processor
time, more than 1 GB of memory, the death of the process, a message of several lines or with control characters, and
text or entities that get lost are failures: each is told once, made smaller and written to --findings. Exit status 1 if
there were any.
"""

import argparse
import sys
from pathlib import Path

from tests.attack.attack import REGRESSIONS, attack, keep, minimize
from tests.attack.targets import QUICK, TARGETS, missing
from tests.attack.watchdog import Watchdog

NAMES = [name for name in TARGETS if name != "made_up"]


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__.splitlines()[0])
    parser.add_argument("--format", action="append", choices=[*NAMES, "quick"], help="a target; may be given again")
    parser.add_argument("--mutants", type=int, help="of each target; default 10,000, or no bound with --minutes")
    parser.add_argument("--minutes", type=float, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant, to go on or to repeat one")
    parser.add_argument("--findings", type=Path, default=REGRESSIONS, help="folder of what failed")
    parser.add_argument("--list", action="store_true", help="name the targets")
    options = parser.parse_args(argv)
    if options.list:
        print("\n".join(NAMES))
        return 0
    names = [name for given in options.format or NAMES for name in (QUICK if given == "quick" else (given,))]
    mutants = options.mutants or (10_000 if options.minutes is None else 10**9)
    seconds = float("inf") if options.minutes is None else options.minutes * 60 / len(names)
    failed = False
    for name in names:
        if lacking := missing(name):
            print(f"{name:18} SKIPPED: {lacking}")
            continue
        result = attack(name, mutants, options.seed, seconds, options.first)
        print(result.row(), flush=True)
        with Watchdog(name) as dog:
            for wanted, (count, order, outcome, case) in result.failures.items():
                failed = True
                place = keep(name, wanted, minimize(dog, case, wanted), options.findings)
                print(f"  {count} x {wanted}; first: mutant {order}\n    {place or 'too large to keep'}")
                print("    " + outcome.detail.strip()[-800:].replace("\n", "\n    "), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
